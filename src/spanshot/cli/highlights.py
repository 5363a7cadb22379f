"""Texts with their entities marked, to look at: coloured on a terminal, or as a page that needs no other file."""

from __future__ import annotations

import colorsys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console
from rich.text import Text

from spanshot.formats.inline import write_inline
from spanshot.types import Entity

GOLDEN = 0.618033988749895  # steps of this size along the circle of colours never come close to one another soon


@dataclass(frozen=True)
class Tagged:
    """A text and what was found in it."""

    text: str
    entities: Sequence[Entity]


def colours(labels: Sequence[str]) -> dict[str, str]:
    """A light colour for each label, as #rrggbb: the same labels always have the same ones."""
    found = {}
    for number, label in enumerate(labels):
        hue = (0.55 + number * GOLDEN) % 1.0
        red, green, blue = colorsys.hls_to_rgb(hue, 0.8, 0.75)
        found[label] = f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
    return found


# Terminal


def highlighted(tagged: Tagged, colour: Mapping[str, str]) -> Text:
    """The text with its entities on coloured ground, each followed by its label; of nested ones the outermost."""
    shown = Text()
    at = 0
    for entity in _outermost(tagged.entities):
        shown.append(tagged.text[at : entity.start])
        shown.append(entity.text, style=f"black on {colour[entity.label]}")
        shown.append(f" {entity.label}", style=f"bold {colour[entity.label]}")
        at = entity.end
    shown.append(tagged.text[at:])
    return shown


def show_highlights(out: Console, documents: Iterable[Tagged], labels: Sequence[str]) -> None:
    """Each text as it comes: coloured, or as markup where there are no colours."""
    colour = colours(labels)
    plain = out.no_color or out.color_system is None
    for document in documents:
        out.print(Text(marked_up(document)) if plain else highlighted(document, colour), soft_wrap=True)


def marked_up(tagged: Tagged) -> str:
    """The text with its entities in inline markup, which can be corrected and given as examples."""
    return write_inline(tagged.text, [(entity.start, entity.end, entity.label) for entity in tagged.entities])


def _outermost(entities: Sequence[Entity]) -> Iterator[Entity]:
    end = 0
    for entity in sorted(entities, key=lambda entity: (entity.start, -entity.end)):
        if entity.start >= end:
            yield entity
            end = entity.end


# Page

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8884; --soft: #777; }}
body {{ font: 16px/1.75 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.25rem; margin: 0 0 .25rem; }}
header p {{ color: var(--soft); margin: 0 0 1.5rem; }}
article {{ border-top: 1px solid var(--line); padding: .8rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }}
mark {{ color: #111; background: var(--c); border-radius: .25em; padding: .1em .15em .1em .3em; cursor: help;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }}
mark mark {{ outline: 2px solid #fff; }}
mark small {{ font-size: .65em; font-weight: 700; letter-spacing: .03em; padding: 0 .35em; opacity: .75; }}
footer {{ border-top: 1px solid var(--line); margin-top: 1rem; padding-top: .8rem; }}
footer mark {{ cursor: default; margin-right: .5rem; }}
{colours}
</style>
</head>
<body>
<header><h1>{title}</h1>
<p>Point at a marked span to see how sure the model is, and which examples made it so.</p></header>
<main>
"""
_FOOT = """</main>
<footer>{legend}</footer>
</body>
</html>
"""


def page(documents: Iterable[Tagged], labels: Sequence[str], title: str = "spanshot") -> Iterator[str]:
    """A page of all documents, piece by piece: nothing is held back but how often each label was found."""
    numbers = {label: number for number, label in enumerate(labels)}
    styles = "\n".join(f".l{number} {{ --c: {code}; }}" for number, code in enumerate(colours(labels).values()))
    yield _HEAD.format(title=escape(title), colours=styles)
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(entity.label for entity in document.entities)
        yield f"<article>{''.join(_marked(document, numbers))}</article>\n"
    legend = "".join(
        f'<mark class="l{number}">{escape(label)}<small>{counts[label]}</small></mark>'
        for label, number in numbers.items()
    )
    yield _FOOT.format(legend=legend)


def _marked(document: Tagged, numbers: Mapping[str, int]) -> Iterator[str]:
    """The text with marks around entities; an entity that lies within another is marked within it.

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
        yield f'<mark class="l{numbers[entity.label]}" title="{escape(_told(entity))}">'
        open_ends.append((end, entity.label))
    yield from closing(len(document.text))
    yield escape(document.text[at:])


def _told(entity: Entity) -> str:
    lines = [f"{entity.label}: {entity.score:.0%} sure"]
    lines += [f"{reason.weight:.0%} by “{reason.text}” in: {reason.example}" for reason in entity.because]
    return "\n".join(lines)
