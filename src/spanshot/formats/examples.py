"""Labelled examples as people have them, from a file or from memory -> sentences, and what was left out of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spanshot.errors import DataError
from spanshot.formats.brat import is_brat, marked_by_brat
from spanshot.formats.char_spans import MarkedText, sentences_of
from spanshot.formats.columns import read_columns
from spanshot.formats.dropped import Drop, Dropped, DropReason
from spanshot.formats.files import read_text
from spanshot.formats.guess import RECORD_FORMATS, find_format, guess_format, guess_record_format
from spanshot.formats.inline import parse_inline, read_inline
from spanshot.formats.json_values import Place, parse_json_records
from spanshot.types import Sentence


@dataclass(frozen=True, slots=True)
class Examples:
    """Labelled sentences, what could not be used, and the format they were in."""

    sentences: tuple[Sentence, ...]
    format: str
    dropped: Dropped = field(default_factory=Dropped)

    @property
    def labels(self) -> dict[str, int]:
        """How often each label is marked, in alphabetical order."""
        return dict(sorted(Counter(span.label for s in self.sentences for span in s.spans).items()))


def read_examples(source: str | Path, format: str | None = None) -> Examples:
    """The examples of a file, or of a folder as brat writes it; without ``format``, as the content looks."""
    path = Path(source)
    name = find_format(format) if format is not None else "brat" if is_brat(path) else None
    if name == "brat":
        return _examples(marked_by_brat(path), name, path)
    text = read_text(path)
    if not text.strip():
        raise DataError.at(path, None, "is empty; expected labelled examples, such as lines of [Apple](ORG) grew.")
    name = name or guess_format(path, text)
    if name == "inline":
        return Examples(tuple(read_inline(path)), name)
    if name == "conll":
        return Examples(tuple(read_columns(path)), name)
    return _examples(RECORD_FORMATS[name].read(parse_json_records(path, text)), name, path)


def parse_examples(
    items: Iterable[str | Mapping[str, Any] | Sentence], format: str | None = None, *, name: str = "example"
) -> Examples:
    """Examples in memory, in any mixture: inline markup, records of a JSON format, and sentences.

    ``format`` says what the records are; messages call the third item "example 3", or by another ``name``.

    >>> parse_examples(["[Oslo](city) is cold."]).labels
    {'city': 1}
    """
    chosen = find_format(format) if format is not None else None
    items = [items] if isinstance(items, str | Mapping | Sentence) else list(items)
    places = [Place(f"{name} {number}") for number in range(1, len(items) + 1)]
    records = [(at, _plain(item, at)) for item, at in zip(items, places, strict=True) if isinstance(item, Mapping)]
    kind = chosen if chosen in RECORD_FORMATS else guess_record_format(record for _, record in records)
    kind = kind or "jsonl"  # whose complaint says what a record must have
    read = list(RECORD_FORMATS[kind].read(records))
    marked = {result.place: result for result in read if isinstance(result, MarkedText)}
    found: list[Sentence | MarkedText | Drop] = [result for result in read if isinstance(result, Drop)]
    for item, place in zip(items, places, strict=True):
        if isinstance(item, Mapping):
            found += [marked[place]] if place in marked else []
        elif isinstance(item, Sentence):
            found.append(item)
        elif isinstance(item, str):
            found.append(_inline(item, place))
        else:
            raise place.error(f"found {type(item).__name__}; expected text with [marks](LABEL), a record or a Sentence")
    kinds = {str: "inline", Sentence: "sentences"}
    formats = dict.fromkeys(kinds.get(type(item), kind) for item in items)
    return _examples(found, ", ".join(formats), f"{name}s")


def _inline(text: str, place: Place) -> Sentence | Drop:
    if not text.strip():
        return Drop(DropReason.NO_TEXT, str(place))
    try:
        return parse_inline(text)
    except DataError as error:
        raise place.error(str(error)) from error


def _plain(record: Mapping[str, Any], place: Place) -> Any:
    """The record as if it had been read from a file: tuples as lists, and so on."""
    try:
        return json.loads(json.dumps(dict(record)))
    except (TypeError, ValueError, RecursionError) as error:
        raise place.error(f"the record must be plain JSON: {error}") from error


def _examples(found: Iterable[Sentence | MarkedText | Drop], format: str, source: Path | str) -> Examples:
    sentences: list[Sentence] = []
    drops: list[Drop] = []
    for item in found:
        if isinstance(item, Sentence):
            sentences.append(item)
        elif isinstance(item, Drop):
            drops.append(item)
        else:
            own, left_out = sentences_of(item)
            sentences += own
            drops += left_out
    dropped = Dropped.of(drops)
    if not sentences:
        why = "; ".join(map(str, dropped.omissions)) or "expected labelled sentences"
        raise DataError.at(source, None, f"no example to learn from: {why}")
    return Examples(tuple(sentences), format, dropped)
