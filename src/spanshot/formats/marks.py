"""The text of a sentence with its spans in characters, as most formats write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spanshot.errors import DataError
from spanshot.files import write_text
from spanshot.formats.json_values import JsonValue, json_line
from spanshot.types import Sentence


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """Characters ``start`` up to but not including ``end``, and their label."""

    start: int
    end: int
    label: str


def marks_of(sentence: Sentence) -> tuple[str, list[Mark]]:
    """Return the text as it was read, or the words joined by single spaces; and the spans in its characters.

    >>> from spanshot.types import Span
    >>> marks_of(Sentence(("in", "Oslo"), (Span(1, 2, "city"),)))
    ('in Oslo', [Mark(start=3, end=7, label='city')])
    """
    sentence = sentence.with_text()
    offsets = sentence.offsets
    return sentence.text, [Mark(offsets[s.start][0], offsets[s.end - 1][1], s.label) for s in sentence.spans]


def write_json_lines(path: str | Path, values: Iterable[JsonValue]) -> None:
    """Write a JSON value a line."""

    def lines() -> Iterable[str]:
        for number, value in enumerate(values, start=1):
            try:
                yield json_line(value)
            except DataError as error:
                raise DataError.at(path, None, f"record {number} cannot be written: {error}") from error

    write_text(path, lines())
