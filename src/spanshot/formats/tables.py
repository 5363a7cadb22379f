"""Examples in tables: rows of a text and its spans, or of tokens and their tags.

The columns are found by their names: "text" with "entities", "spans" or "label", or "tokens" with "ner_tags", "tags" or
"labels". Tags and labels may be numbers if the table has their names, as Hugging Face datasets do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from spanshot.errors import ConfigError, DataError
from spanshot.files import replacing
from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.files import MAX_WORDS
from spanshot.formats.json_values import JsonObject, JsonValue, Place
from spanshot.formats.schema import ENTITY, arrow_type
from spanshot.formats.table_files import (
    DELIMITERS,
    ROWS,
    ArrowRows,
    Rows,
    TextRows,
    is_table_file,
    plain,
    read_rows,
    write_table_file,
)
from spanshot.optional import need
from spanshot.tags import guess_scheme, spans_from_tags
from spanshot.types import Sentence

_TEXT, _SPANS = ("text", "sentence"), ("entities", "spans", "label", "labels")
_TOKENS, _TAGS = ("tokens", "words"), ("ner_tags", "tags", "labels")
_START, _END = ("start", "start_offset", "start_char"), ("end", "end_offset", "end_char")
_LABEL = ("label", "type", "tag")


@dataclass(frozen=True)
class Columns:
    """The columns of the examples. Empty: find the column by its usual names."""

    text: str = ""
    spans: str = ""
    tokens: str = ""
    tags: str = ""
    names: Sequence[str] = ()
    """Names of numeric tags or labels, if the table does not provide them."""


@dataclass(frozen=True)
class RowTable:
    """A table as rows of JSON values, and the names of labels that are numbers, by column."""

    source: Path | str
    columns: list[str]
    rows: Iterable[JsonObject]
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read_table_examples(table: RowTable, columns: Columns | None = None) -> Iterator[Sentence | MarkedText | Drop]:
    """Read the examples of a table, one per row."""
    columns = columns or Columns()
    tokens, tags = _find(table, columns.tokens, _TOKENS), _find(table, columns.tags, _TAGS)
    text, spans = _find(table, columns.text, _TEXT), _find(table, columns.spans, _SPANS)
    if tokens and tags and not (columns.text or columns.spans):
        return _of_tags(table, tokens, tags, columns.names or table.names.get(tags, ()))
    if text and spans:
        return _of_spans(table, text, spans, columns.names or table.names.get(spans, ()))
    raise DataError.at(
        table.source,
        None,
        "expected the columns text and entities, or tokens and ner_tags; "
        f"found {', '.join(table.columns[:12]) or 'none'}",
    )


def _find(table: RowTable, name: str, usual: Iterable[str]) -> str:
    if name and name not in table.columns:
        raise ConfigError(f"no column {name!r}; the columns are {', '.join(table.columns)}")
    return name or next((usual_name for usual_name in usual if usual_name in table.columns), "")


def _of_tags(table: RowTable, tokens: str, tags: str, names: Sequence[str]) -> Iterator[Sentence | Drop]:
    rows: list[tuple[Place, list[str], list[str]]] = []
    for number, row in enumerate(table.rows, start=1):
        place = Place(table.source, None, f"row {number}")
        words = [place.check(word, tokens, str) for word in place.check(_parsed(row[tokens]), tokens, list)]
        marks = [_named(mark, names, tags, place) for mark in place.check(_parsed(row[tags]), tags, list)]
        if len(words) != len(marks):
            raise place.error(f"found {len(words)} {tokens} and {len(marks)} {tags}; expected as many of each")
        rows.append((place, words, marks))
    scheme = guess_scheme([names] if names else (marks for _, _, marks in rows))
    for place, words, marks in rows:
        if not words:
            yield Drop(DropReason.NO_TEXT, str(place))
        elif len(words) > MAX_WORDS:
            yield Drop(DropReason.TOO_LONG, str(place))
        else:
            try:
                yield Sentence(tuple(words), spans_from_tags(marks, scheme))
            except DataError as error:
                raise place.error(str(error)) from error


def _of_spans(table: RowTable, text: str, spans: str, names: Sequence[str]) -> Iterator[MarkedText | Drop]:
    for number, row in enumerate(table.rows, start=1):
        place = Place(table.source, None, f"row {number}")
        items = [
            _span(span, names, place.within(f"span {position}"))
            for position, span in enumerate(_span_list(_parsed(row[spans]), spans, place), start=1)
        ]
        extra = {key: value for key, value in row.items() if key not in {text, spans}}
        yield marked_text(row[text], items, place, exact=True, fields=extra)


def _span_list(value: JsonValue, name: str, place: Place) -> list[JsonValue]:
    """Return the spans of a cell as a list; a struct of lists, as in datasets, is transposed."""
    if isinstance(value, dict):
        lists = {key: place.check(items, key, list) for key, items in value.items()}
        return [dict(zip(lists, items, strict=True)) for items in zip(*lists.values(), strict=True)]
    spans: list[JsonValue] = place.check(value or [], name, list)
    return spans


def _span(span: JsonValue, names: Sequence[str], place: Place) -> CharSpan | Drop:
    if isinstance(span, list) and len(span) == 3:
        start, end, label = span
        surface, score = None, None
    else:
        fields = place.record(span, "start")
        start, end, label = (
            next((fields[key] for key in keys if key in fields), None) for keys in (_START, _END, _LABEL)
        )
        surface, score = fields.get("text"), fields.get("score")
    return char_span(start, end, _named(label, names, "label", place), place, surface, score)


def _named(value: JsonValue, names: Sequence[str], column: str, place: Place) -> str:
    """Return the name of a tag or label, which may be a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not names:
            raise place.error(f"the {column} are numbers; give their names, in order, as names=[...]")
        if not 0 <= value < len(names):
            raise place.error(f"found {value} in {column}; there are {len(names)} names")
        return names[value]
    return place.check(value, column, str)


def _parsed(value: JsonValue) -> JsonValue:
    """Parse a cell of a CSV file that contains a list."""
    if isinstance(value, str) and value[:1] in {"[", "{"}:
        try:
            parsed: JsonValue = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return parsed
    return None if value == "" else value


# Tables as rows


def table_of_file(path: Path) -> RowTable:
    """Read a file as rows."""
    chunks = read_rows(path)
    first = next(chunks)
    rows = chain.from_iterable(chunk.records() for chunk in chain([first], chunks))
    metadata = (first.batch.schema.metadata or {}) if isinstance(first, ArrowRows) else {}
    return RowTable(path, first.names, rows, _names_in_metadata(metadata.get(b"huggingface")))


def table_of_memory(table: object) -> RowTable | None:
    """Read a data frame, an Arrow table or a dataset as rows; None for anything else."""
    for kind in type(table).__mro__:
        read = _READERS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if read is not None:
            columns, rows, names = read(table)
            plain_rows = ({str(key): plain(value) for key, value in row.items()} for row in rows)
            return RowTable("table", list(map(str, columns)), plain_rows, names)
    return None


_Read = tuple[Iterable[object], Iterable[Mapping[str, object]], Mapping[str, Sequence[str]]]


def _pandas(frame: object) -> _Read:
    columns, to_dict = getattr(frame, "columns", ()), getattr(frame, "to_dict", None)
    assert callable(to_dict)
    return columns, to_dict("records"), {}


def _polars(frame: object) -> _Read:
    columns, iter_rows = getattr(frame, "columns", ()), getattr(frame, "iter_rows", None)
    assert callable(iter_rows)
    return columns, iter_rows(named=True), {}


def _arrow(table: object) -> _Read:
    schema, to_batches = getattr(table, "schema", None), getattr(table, "to_batches", None)
    assert callable(to_batches)
    names = _names_in_metadata((getattr(schema, "metadata", None) or {}).get(b"huggingface"))
    return getattr(schema, "names", ()), chain.from_iterable(batch.to_pylist() for batch in to_batches(ROWS)), names


def _dataset(dataset: object) -> _Read:
    features: Mapping[str, object] = getattr(dataset, "features", None) or {}
    names = {}
    for column, feature in features.items():
        while (inner := getattr(feature, "feature", None)) is not None:
            feature = inner
        parts = feature.values() if isinstance(feature, Mapping) else [feature]
        label_names = next(
            (getattr(part, "names", None) for part in parts if type(part).__name__ == "ClassLabel"), None
        )
        if label_names is not None:
            names[column] = label_names
    assert isinstance(dataset, Iterable)
    return features, dataset, names


_READERS = {
    "pandas.DataFrame": _pandas,
    "polars.DataFrame": _polars,
    "pyarrow.Table": _arrow,
    "datasets.Dataset": _dataset,
    "datasets.IterableDataset": _dataset,
}


def _names_in_metadata(metadata: bytes | None) -> dict[str, Sequence[str]]:
    """Return the names of labels that Hugging Face datasets keep in the metadata of their files, by column."""
    try:
        features = json.loads(metadata or b"{}")["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    names: dict[str, Sequence[str]] = {}
    for column, feature in features.items():
        while isinstance(feature, dict) and isinstance(feature.get("feature"), dict):
            feature = feature["feature"]
        parts = [feature, *feature.values()] if isinstance(feature, dict) else []
        for part in parts:
            if isinstance(part, dict) and part.get("_type") == "ClassLabel" and isinstance(part.get("names"), list):
                names[column] = [str(name) for name in part["names"]]
    return names


# Writing


def write_table(path: Path, documents: Iterable[Document], log: DropLog) -> None:
    """Write a table of the columns text and entities, in the format given by the file name."""
    del log
    if not is_table_file(path):
        raise DataError.at(path, None, "the name of a table must end with .parquet, .arrow, .csv or .tsv")

    def chunks() -> Iterator[Rows]:
        chunk: list[Document] = []
        any_written = False
        for document in documents:
            chunk.append(document)
            if len(chunk) == ROWS:
                yield _rows(chunk, path)
                chunk, any_written = [], True
        if chunk or not any_written:
            yield _rows(chunk, path)

    with replacing(path, "wb") as file:
        write_table_file(path, file, chunks())


def _rows(documents: Sequence[Document], path: Path) -> Rows:
    records: list[list[JsonObject]] = []
    for document in documents:
        row: list[JsonObject] = []
        for mark in document.marks:
            values = (mark.start, mark.end, mark.label, document.text[mark.start : mark.end], mark.score)
            row.append(dict(zip(ENTITY, values, strict=True)))
        records.append(row)
    texts = [document.text for document in documents]
    if path.suffix.lower() in DELIMITERS:
        cells = (json.dumps(row, ensure_ascii=False) for row in records)
        return TextRows(["text", "entities"], [list(row) for row in zip(texts, cells, strict=True)])
    pa = need("pyarrow", "tables")
    arrays = [pa.array(texts, pa.string()), pa.array(records, arrow_type())]
    return ArrowRows(pa.RecordBatch.from_arrays(arrays, names=["text", "entities"]))
