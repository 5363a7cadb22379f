"""Show texts with their entities highlighted: coloured on a terminal, or as an HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from rich.console import Console
from rich.text import Text

from spanshot.cli.console import visible
from spanshot.cli.pages import FOOT, head
from spanshot.formats.inline import write_inline
from spanshot.integrations.html import MARK_STYLE, Tagged, colours, marked_html
from spanshot.types import Entity

__all__ = ["Tagged", "colours", "highlighted", "inline_markup", "page", "show_highlights"]


def inline_markup(tagged: Tagged) -> str:
    """Return the text with its entities in inline markup, which can be corrected and used as examples."""
    return write_inline(tagged.text, [(entity.start, entity.end, entity.label) for entity in tagged.entities])


# Terminal


def highlighted(tagged: Tagged, colour: Mapping[str, str]) -> Text:
    """Colour the entities of a text and add their labels. Of nested entities, only the outermost are shown."""
    styled = Text()
    at = 0
    for entity in _outermost(tagged.entities):
        styled.append(visible(tagged.text[at : entity.start]))
        styled.append(visible(entity.text), style=f"black on {colour[entity.label]}")
        styled.append(f" {visible(entity.label)}", style=f"bold {colour[entity.label]}")
        at = entity.end
    styled.append(visible(tagged.text[at:]))
    return styled


def show_highlights(out: Console, documents: Iterable[Tagged], labels: Sequence[str]) -> None:
    """Print each text when it arrives: coloured, or in inline markup on a terminal without colours."""
    colour = colours(labels)
    plain = out.no_color or out.color_system is None
    for document in documents:
        styled = Text(visible(inline_markup(document))) if plain else highlighted(document, colour)
        out.print(styled, soft_wrap=True)


def _outermost(entities: Sequence[Entity]) -> Iterator[Entity]:
    end = 0
    for entity in sorted(entities, key=lambda entity: (entity.start, -entity.end)):
        if entity.start >= end:
            yield entity
            end = entity.end


# Page

_STYLE = """article {{ border-top: 1px solid var(--line); padding: .8rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; }}
footer {{ border-top: 1px solid var(--line); margin-top: 1rem; padding-top: .8rem; }}
footer mark {{ cursor: default; margin-right: .5rem; }}
{colours}"""
_SUBTITLE = "Point at a highlighted entity to see its score and the examples that led to it."


def page(documents: Iterable[Tagged], labels: Sequence[str], title: str = "spanshot") -> Iterator[str]:
    """Build a page of all documents, piece by piece, so that any number of them fits into memory."""
    classes = {label: f'class="l{number}"' for number, label in enumerate(labels)}
    styles = "\n".join(f".l{number} {{ --c: {code}; }}" for number, code in enumerate(colours(labels).values()))
    yield head(title, _SUBTITLE, MARK_STYLE.format(scope="") + _STYLE.format(colours=styles))
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(entity.label for entity in document.entities)
        yield f"<article>{''.join(marked_html(document, classes))}</article>\n"
    legend = "".join(
        f"<mark {attribute}>{escape(label)}<small>{counts[label]}</small></mark>"
        for label, attribute in classes.items()
    )
    yield f"</main>\n<footer>{legend}</footer>\n{FOOT}"
