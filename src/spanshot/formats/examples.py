"""Read labelled examples, from a file or from memory, as sentences."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from spanshot.errors import DataError, InputError, SpanshotWarning
from spanshot.formats.brat import read_brat
from spanshot.formats.char_spans import MarkedText, sentences_of
from spanshot.formats.columns import parse_columns
from spanshot.formats.docbin import read_docbin
from spanshot.formats.documents import Document, document_of
from spanshot.formats.dropped import Drop, Dropped, DropReason
from spanshot.formats.files import read_text
from spanshot.formats.guess import RECORD_FORMATS, find_format, format_of_name, guess_format, guess_record_format
from spanshot.formats.inline import parse_inline, parse_inline_lines
from spanshot.formats.json_values import JsonRecords, JsonValue, Place
from spanshot.formats.label_studio import read_label_studio
from spanshot.formats.project import read_project
from spanshot.formats.tables import Columns, read_table_examples, table_of_file, table_of_memory
from spanshot.types import Sentence, SupportSet

Example: TypeAlias = str | Mapping[str, JsonValue] | Sentence
Parseable: TypeAlias = Example | Iterable[Example]
"""Examples in memory: inline markup, records of a JSON format, and sentences."""

FILE_FORMATS: dict[str, Callable[[Path], Iterable[Sentence | MarkedText | Drop]]] = {
    "brat": read_brat,
    "spacy": read_docbin,
    "table": lambda path: read_table_examples(table_of_file(path)),
    "project": read_project,
}
"""The formats that are not one file of text."""

_CONTENT = re.compile(r"\]\(|[\r\n]")

ExampleSource: TypeAlias = SupportSet | Path | Parseable
"""Examples in any form: the above, a file, a folder, a support set, or a data frame or dataset."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Labelled sentences, their original format, and the items that were dropped."""

    sentences: tuple[Sentence, ...]
    format: str
    dropped: Dropped = field(default_factory=Dropped)

    @property
    def labels(self) -> dict[str, int]:
        """How often each label is marked, in alphabetical order."""
        return dict(sorted(Counter(span.label for s in self.sentences for span in s.spans).items()))


def to_sentences(examples: ExampleSource) -> tuple[Sentence, ...]:
    """Read examples in any form and warn about dropped items."""
    if isinstance(examples, SupportSet):
        return examples.sentences
    table = None if isinstance(examples, str | Path | list | tuple) else table_of_memory(examples)
    if table is not None:
        read = _examples(read_table_examples(table), "table", table.source)
    elif not isinstance(examples, str | Iterable | Path | Sentence):
        kind = type(examples).__name__
        raise InputError(f"expected examples: text with [marks](LABEL), records, or a file; found {kind}")
    elif isinstance(examples, Path) or (isinstance(examples, str) and not _CONTENT.search(examples)):
        read = read_examples(examples)
    else:
        read = parse_examples(examples)
    if read.dropped.omissions:
        warnings.warn(read.dropped.summary(), SpanshotWarning, stacklevel=4)
    return read.sentences


def examples_of_table(table: object, columns: Columns | None = None) -> Examples:
    """Read the examples of a data frame, an Arrow table or a dataset. ``columns`` names columns with unusual names."""
    rows = table_of_memory(table)
    if rows is None:
        raise InputError(f"expected a data frame, an Arrow table or a dataset; found {type(table).__name__}")
    return _examples(read_table_examples(rows, columns), "table", rows.source)


@dataclass(frozen=True, slots=True)
class Documents:
    """Texts with marks in characters, their original format, and the items that were dropped."""

    documents: tuple[Document, ...]
    format: str
    dropped: Dropped = field(default_factory=Dropped)


def read_documents(source: str | Path, format: str | None = None) -> Documents:
    """Read texts with their marks and scores for conversion, including predictions and marks inside words."""
    path = Path(source)
    name = find_format(format) if format is not None else format_of_name(path)
    items: Iterable[Sentence | MarkedText | Drop]
    if name is not None and name in FILE_FORMATS:
        items = FILE_FORMATS[name](path)
    else:
        text = read_text(path)
        name = name or guess_format(path, text)
        if name == "label-studio":
            items = read_label_studio(JsonRecords(path, text), predictions=True)
        elif name in RECORD_FORMATS:
            items = RECORD_FORMATS[name].read(JsonRecords(path, text))
        else:
            items = parse_inline_lines(text, path) if name == "inline" else parse_columns(text, path)
    documents: list[Document] = []
    drops: list[Drop] = []
    for item in items:
        if isinstance(item, Sentence):
            documents.append(Document.of(item))
        elif isinstance(item, Drop):
            drops.append(item)
        else:
            document, left_out = document_of(item)
            documents.append(document)
            drops += left_out
    assert name is not None
    return Documents(tuple(documents), name, Dropped.of(drops))


def read_examples(source: str | Path, format: str | None = None) -> Examples:
    """Read the examples of a file, or of a folder in brat's format. Without ``format``, guess it from the content."""
    path = Path(source)
    name = find_format(format) if format is not None else format_of_name(path)
    if name is not None and name in FILE_FORMATS:
        return _examples(FILE_FORMATS[name](path), name, path)
    return _examples_of_text(read_text(path), name, path)


def examples_of(source: Path | Parseable, format: str | None = None) -> Examples:
    """Read examples from a file or from memory. A string with markup or a line break is content, not a file name."""
    if isinstance(source, Path) or (isinstance(source, str) and not _CONTENT.search(source)):
        return read_examples(source, format)
    return parse_examples(source, format)


def parse_examples(
    items: Parseable,
    format: str | None = None,
    *,
    name: str = "example",
) -> Examples:
    """Parse examples in memory, in any mixture: inline markup, records of a JSON format, and sentences.

    A single string of several lines is read like a file with that content; in a list, each string is one example.
    ``format`` is the format of records. Messages refer to the third item as "example 3", or by another ``name``.

    >>> parse_examples(["[Oslo](city) is cold."]).labels
    {'city': 1}
    >>> len(parse_examples("[Oslo](city) is cold.\\n[Rome](city) is not.").sentences)
    2
    """
    chosen = find_format(format) if format is not None else None
    if isinstance(items, str) and chosen != "brat":
        text = items.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
        if "\n" in text:
            return _examples_of_text(text, chosen, f"{name}s")
    if isinstance(items, str | Mapping | Sentence):
        items = [items]
    elif isinstance(items, bytes) or not isinstance(items, Iterable):
        raise DataError(f"found {type(items).__name__}; expected examples: a path, text with [marks](LABEL), or a list")
    items = list(items)
    if items and chosen is None and all(isinstance(item, str) and item.strip() for item in items):
        sentences = []
        for number, item in enumerate(items, start=1):
            try:
                sentences.append(parse_inline(str(item)))
            except DataError as error:
                raise Place(f"{name} {number}").error(str(error)) from error
        return Examples(tuple(sentences), "inline")
    places = [Place(f"{name} {number}") for number in range(1, len(items) + 1)]
    records = [(at, _plain(item, at)) for item, at in zip(items, places, strict=True) if isinstance(item, Mapping)]
    kind = chosen if chosen in RECORD_FORMATS else guess_record_format(record for _, record in records)
    kind = kind or "jsonl"  # its errors list the keys of a record
    results = list(RECORD_FORMATS[kind].read(records))
    texts = {result.place: result for result in results if isinstance(result, MarkedText)}
    parsed: list[Sentence | MarkedText | Drop] = [result for result in results if isinstance(result, Drop)]
    for item, place in zip(items, places, strict=True):
        if isinstance(item, Mapping):
            parsed += [texts[place]] if place in texts else []
        elif isinstance(item, Sentence):
            parsed.append(item)
        elif isinstance(item, str):
            parsed.append(_inline(item, place))
        else:
            raise place.error(f"found {type(item).__name__}; expected text with [marks](LABEL), a record or a Sentence")
    kinds = {str: "inline", Sentence: "sentences"}
    formats = dict.fromkeys(kinds.get(type(item), kind) for item in items)
    return _examples(parsed, ", ".join(formats), f"{name}s")


def _examples_of_text(text: str, format: str | None, source: Path | str) -> Examples:
    """Read the text of a file; ``source`` names it in errors."""
    if not text.strip():
        raise DataError.at(source, None, "is empty; expected labelled examples, such as lines of [Apple](ORG) grew.")
    name = format or guess_format(source, text)
    if name == "inline":
        return Examples(tuple(parse_inline_lines(text, source)), name)
    if name == "conll":
        return Examples(tuple(parse_columns(text, source)), name)
    return _examples(RECORD_FORMATS[name].read(JsonRecords(source, text)), name, source)


def _inline(text: str, place: Place) -> Sentence | Drop:
    if not text.strip():
        return Drop(DropReason.NO_TEXT, str(place))
    try:
        return parse_inline(text)
    except DataError as error:
        raise place.error(str(error)) from error


def _plain(record: Mapping[str, JsonValue], place: Place) -> JsonValue:
    """Return the record as if it had been read from a file: tuples as lists, and so on."""
    try:
        plain: JsonValue = json.loads(json.dumps(dict(record), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise place.error(f"the record must be plain JSON: {error}") from error
    return plain


def _examples(items: Iterable[Sentence | MarkedText | Drop], format: str, source: Path | str) -> Examples:
    sentences: list[Sentence] = []
    drops: list[Drop] = []
    for item in items:
        if isinstance(item, Sentence):
            sentences.append(item)
        elif isinstance(item, Drop):
            drops.append(item)
        else:
            text_sentences, text_drops = sentences_of(item)
            sentences += text_sentences
            drops += text_drops
    dropped = Dropped.of(drops)
    if not sentences:
        why = "; ".join(map(str, dropped.omissions)) or "expected labelled sentences"
        raise DataError.at(source, None, f"no example to learn from: {why}")
    return Examples(tuple(sentences), format, dropped)
