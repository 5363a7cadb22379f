"""Show texts with their entities highlighted, as HTML without scripts."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from spanshot.types import Entity

GOLDEN = 0.618033988749895  # steps of this size around the colour circle keep neighbouring labels apart
MARK_STYLE = """{scope}mark {{ color: #111; background: var(--c); border-radius: .25em;
  padding: .1em .15em .1em .3em; cursor: help;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }}
{scope}mark mark {{ outline: 2px solid #fff; }}
{scope}mark small {{ font-size: .65em; font-weight: 700; letter-spacing: .03em; padding: 0 .35em; opacity: .75; }}
"""


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


def marked_html(document: Tagged, attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the text with marks around entities; nested entities get nested marks.

    ``attributes`` has the HTML attributes of each label's marks. Entities that overlap without nesting cannot be shown
    as such: the later one begins where the earlier ends.
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
        yield f'<mark {attributes[entity.label]} title="{escape(_explanation(entity))}">'
        open_ends.append((end, entity.label))
    yield from closing(len(document.text))
    yield escape(document.text[at:])


def _explanation(entity: Entity) -> str:
    lines = [f"{entity.label}: score {entity.score:.0%}"]
    is_sum = any(reason.kind == "rest" for reason in entity.because)  # else weights are shares
    for reason in entity.because:
        weight = f"{reason.weight:+.1f}" if is_sum else f"{reason.weight:.0%}"
        if reason.kind in ("example", "rejected"):
            lines.append(f"{weight} from “{reason.text}” in: {reason.example}")
        elif reason.kind == "name":
            lines.append(f"{weight} from the name “{reason.text}”")
        elif reason.kind == "text":
            lines.append(f"{weight} because examples mark “{reason.text}”")
    return "\n".join(lines)
