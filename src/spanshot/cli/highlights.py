"""Show texts with their entities highlighted: coloured on a terminal, or as an HTML page."""

from __future__ import annotations

import colorsys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console
from rich.text import Text

from spanshot.cli.console import visible
from spanshot.cli.pages import FOOT, head
from spanshot.formats.inline import write_inline
from spanshot.types import Entity

GOLDEN = 0.618033988749895  # steps of this size around the colour circle keep neighbouring labels apart


@dataclass(frozen=True)
class Tagged:
    """A text and its entities."""

    text: str
    entities: Sequence[Entity]


def colours(labels: Sequence[str]) -> dict[str, str]:
    """Choose a light colour for each label, as #rrggbb. The same labels always get the same colours."""
    chosen = {}
    for number, label in enumerate(labels):
        hue = (0.55 + number * GOLDEN) % 1.0
        red, green, blue = colorsys.hls_to_rgb(hue, 0.8, 0.75)
        chosen[label] = f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
    return chosen


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
mark {{ color: #111; background: var(--c); border-radius: .25em; padding: .1em .15em .1em .3em; cursor: help;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }}
mark mark {{ outline: 2px solid #fff; }}
mark small {{ font-size: .65em; font-weight: 700; letter-spacing: .03em; padding: 0 .35em; opacity: .75; }}
footer {{ border-top: 1px solid var(--line); margin-top: 1rem; padding-top: .8rem; }}
footer mark {{ cursor: default; margin-right: .5rem; }}
{colours}"""
_SUBTITLE = "Point at a highlighted entity to see its score and the examples that led to it."


def page(documents: Iterable[Tagged], labels: Sequence[str], title: str = "spanshot") -> Iterator[str]:
    """Build a page of all documents, piece by piece, so that any number of them fits into memory."""
    numbers = {label: number for number, label in enumerate(labels)}
    styles = "\n".join(f".l{number} {{ --c: {code}; }}" for number, code in enumerate(colours(labels).values()))
    yield head(title, _SUBTITLE, _STYLE.format(colours=styles))
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(entity.label for entity in document.entities)
        yield f"<article>{''.join(_marked(document, numbers))}</article>\n"
    legend = "".join(
        f'<mark class="l{number}">{escape(label)}<small>{counts[label]}</small></mark>'
        for label, number in numbers.items()
    )
    yield f"</main>\n<footer>{legend}</footer>\n{FOOT}"


def _marked(document: Tagged, numbers: Mapping[str, int]) -> Iterator[str]:
    """Yield the text with marks around entities; nested entities get nested marks.

    Entities that overlap without nesting cannot be shown as such: the later one begins where the earlier ends.
    """
    open_ends: list[tuple[int, str]] = []
    at = 0

    def closing(until: int) -> Iterator[str]:
        nonlocal at
        while open_ends and open_ends[-1][0] <= until:
            end, label = open_ends.pop()
            yield f"{escape(document.text[at:end])}<small>{escape(label)}</small></mark>"
            at = max(at, end)

    for entity in sorted(document.entities, key=lambda entity: (entity.start, -entity.end, entity.label)):
        yield from closing(entity.start)
        yield escape(document.text[at : entity.start])
        at = max(at, entity.start)
        end = min([entity.end, *(end for end, _ in open_ends)])
        yield f'<mark class="l{numbers[entity.label]}" title="{escape(_explanation(entity))}">'
        open_ends.append((end, entity.label))
    yield from closing(len(document.text))
    yield escape(document.text[at:])


def _explanation(entity: Entity) -> str:
    lines = [f"{entity.label}: score {entity.score:.0%}"]
    lines += [f"{reason.weight:.0%} from “{reason.text}” in: {reason.example}" for reason in entity.because]
    return "\n".join(lines)
