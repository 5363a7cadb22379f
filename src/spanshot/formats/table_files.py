"""Files of rows and columns, read and written a chunk of rows at a time: Parquet, Arrow, CSV and TSV.

Cells of CSV files are kept as strings: nothing is parsed as a number or a date.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, TypeAlias

from spanshot.errors import ConfigError, DataError, did_you_mean
from spanshot.formats.json_values import JsonObject, JsonValue
from spanshot.formats.schema import arrow_type, with_feature
from spanshot.optional import need

if TYPE_CHECKING:
    import pyarrow

DELIMITERS = {".csv": ",", ".tsv": "\t"}
ARROW = {".arrow", ".feather"}
TABLES = {".parquet", *ARROW, *DELIMITERS}
"""File name suffixes of tables."""
ROWS = 1024
"""Rows per chunk."""
_CHUNKS_IN_A_GROUP = 16
"""Chunks per row group of a Parquet file."""
QUOTE = '"'
_LONGEST_CELL = 2**31 - 1


@dataclass(frozen=True)
class ArrowRows:
    """Rows of an Arrow or Parquet file."""

    batch: pyarrow.RecordBatch

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.batch.schema.names)

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def column(self, name: str) -> Sequence[object]:
        """Return the values of a column."""
        values: list[object] = self.batch.column(name).to_pylist()
        return values

    def records(self) -> list[JsonObject]:
        """Return the rows as JSON objects; dates and other types become strings."""
        return [{name: plain(value) for name, value in row.items()} for row in self.batch.to_pylist()]

    def cells(self) -> Iterator[list[str]]:
        """Yield the rows as strings, for CSV."""
        columns = [list(map(_cell, self.batch.column(name).to_pylist())) for name in self.names]
        return map(list, zip(*columns, strict=True))

    def arrow(self) -> pyarrow.RecordBatch:
        """Return the rows as an Arrow batch."""
        return self.batch

    def after(self, start: int) -> ArrowRows:
        """Return the rows from ``start`` on."""
        return ArrowRows(self.batch.slice(start))

    def take(self, places: Sequence[int]) -> ArrowRows:
        """Return the rows at these places."""
        return ArrowRows(self.batch.take(need("pyarrow", "tables").array(places, "int64")))

    def with_entities(self, name: str, entities: Sequence[list[JsonObject] | None], *, because: bool) -> ArrowRows:
        """Return the rows with a column of entities."""
        pa = need("pyarrow", "tables")
        kind = arrow_type(because=because)
        batch = self.batch.append_column(pa.field(name, kind), pa.array(entities, kind))
        return ArrowRows(batch.replace_schema_metadata(with_feature(batch.schema.metadata, name, because=because)))


@dataclass(frozen=True)
class TextRows:
    """Rows of a CSV file."""

    names: list[str]
    rows: list[list[str]]

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Sequence[object]:
        """Return the values of a column."""
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def records(self) -> list[JsonObject]:
        """Return the rows as JSON objects."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]

    def cells(self) -> Iterator[list[str]]:
        """Yield the rows."""
        return iter(self.rows)

    def arrow(self) -> pyarrow.RecordBatch:
        """Return the rows as an Arrow batch of strings."""
        pa = need("pyarrow", "tables")
        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in self.names]
        arrays = [pa.array(column, pa.string()) for column in columns]
        return pa.RecordBatch.from_arrays(arrays, names=self.names)

    def after(self, start: int) -> TextRows:
        """Return the rows from ``start`` on."""
        return TextRows(self.names, self.rows[start:])

    def take(self, places: Sequence[int]) -> TextRows:
        """Return the rows at these places."""
        return TextRows(self.names, [self.rows[place] for place in places])

    def with_entities(self, name: str, entities: Sequence[list[JsonObject] | None], *, because: bool) -> TextRows:
        """Return the rows with a column of entities, as JSON."""
        del because
        rows = [[*row, _cell(records)] for row, records in zip(self.rows, entities, strict=True)]
        return TextRows([*self.names, name], rows)


Rows: TypeAlias = ArrowRows | TextRows


def is_table_file(path: Path) -> bool:
    """Return whether a file is a table, by its name."""
    return path.suffix.lower() in TABLES


def check_columns(names: Iterable[object], column: str, output: str | None = None) -> None:
    """Check that the column of texts exists and the new one, if any, does not."""
    columns = list(map(str, names))
    if column not in columns:
        raise ConfigError(
            f"no column {column!r}; the columns are {', '.join(columns) or 'none'}{did_you_mean(column, columns)}"
        )
    if output in columns:
        raise ConfigError(f"there is already a column {output!r}; choose another name for the entities")


def read_rows(path: Path, rows: int = ROWS) -> Iterator[Rows]:
    """Read a table in chunks of rows. The first chunk may be empty, but has the names of the columns."""
    suffix = path.suffix.lower()
    if not path.is_file():
        raise DataError.at(path, None, "is a folder; name a file" if path.is_dir() else "no such file; check the path")
    if suffix in DELIMITERS:
        return _read_text(path, DELIMITERS[suffix], rows)
    return _read_arrow(path, suffix, rows)


@dataclass(frozen=True)
class BadRow:
    """A row of a CSV file that cannot be read."""

    problem: str
    cells: list[str]
    """The cells, as far as they could be read."""


class CsvRows:
    """The rows of an open CSV file, one at a time. Blank lines are skipped."""

    def __init__(self, lines: Iterable[str], delimiter: str, source: str | Path) -> None:
        csv.field_size_limit(_LONGEST_CELL)
        self._reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            self.names = next(self._reader, [])
        except csv.Error as error:
            raise DataError.at(source, 1, f"malformed CSV: {error}") from error
        if len(set(self.names)) != len(self.names):
            raise DataError.at(source, 1, "two columns have the same name; rename one")

    @property
    def line(self) -> int:
        """The number of the last line that was read."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[list[str] | BadRow]:
        wanted = f"expected {len(self.names)}, as many as there are names in line 1"
        while True:
            try:
                row = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield BadRow(f"malformed CSV: {error}", [])
                continue
            if len(row) == len(self.names):
                yield row
            elif row:
                yield BadRow(f"found {len(row)} cells; {wanted}", row)


def _read_text(path: Path, delimiter: str, rows: int) -> Iterator[Rows]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = None
        try:
            reader = CsvRows(file, delimiter, path)
            chunk: list[list[str]] = []
            count = 0
            for row in reader:
                if isinstance(row, BadRow):
                    raise DataError.at(path, reader.line, row.problem)
                chunk.append(row)
                if len(chunk) == rows:
                    yield TextRows(reader.names, chunk)
                    count, chunk = count + 1, []
            if chunk or not count:
                yield TextRows(reader.names, chunk)
        except UnicodeDecodeError as error:
            problem = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
            raise DataError.at(path, (reader.line if reader else 0) + 1, problem) from None


def _read_arrow(path: Path, suffix: str, rows: int) -> Iterator[Rows]:
    pa = need("pyarrow", "tables")
    try:
        if suffix == ".parquet":
            with need("pyarrow.parquet", "tables").ParquetFile(path) as file:
                schema = file.schema_arrow
                yield from _chunks(file.iter_batches(batch_size=rows), schema, rows)
            return
        with pa.memory_map(str(path)) as source:
            try:
                reader = pa.ipc.open_file(source)
            except pa.ArrowInvalid:  # the streaming format
                source.seek(0)
                stream = pa.ipc.open_stream(source)
                yield from _chunks(stream, stream.schema, rows)
                return
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            yield from _chunks(batches, reader.schema, rows)
    except (pa.ArrowException, OSError) as error:
        kind = "Parquet" if suffix == ".parquet" else "Arrow"
        raise DataError.at(path, None, f"is not a readable {kind} file: {_first_line(error)}") from error


def _chunks(batches: Iterable[pyarrow.RecordBatch], schema: pyarrow.Schema, rows: int) -> Iterator[Rows]:
    pa = need("pyarrow", "tables")
    count = 0
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            # With the metadata of the file, where datasets keep the names of labels.
            yield ArrowRows(batch.slice(start, rows).replace_schema_metadata(schema.metadata))
            count += 1
    if not count:
        yield ArrowRows(pa.RecordBatch.from_pylist([], schema=schema))


def write_table_file(path: Path, file: BinaryIO, chunks: Iterable[Rows]) -> None:
    """Write chunks of rows to an open file, in the format given by the file name."""
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        for number, chunk in enumerate(chunks):
            text.write(csv_lines(chunk, DELIMITERS[suffix], header=number == 0))
        text.detach()
        return
    pa = need("pyarrow", "tables")
    writer = None
    waiting: list[pyarrow.RecordBatch] = []
    for chunk in chunks:
        waiting.append(chunk.arrow())
        if writer is None:
            writer = _arrow_writer(suffix, file, waiting[0].schema)
        if len(waiting) == _CHUNKS_IN_A_GROUP:
            writer.write_table(pa.Table.from_batches(waiting))
            waiting.clear()
    if writer is not None:
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
        writer.close()


def _arrow_writer(suffix: str, file: IO[bytes], schema: pyarrow.Schema) -> pyarrow.ipc.RecordBatchFileWriter:
    pa = need("pyarrow", "tables")
    if suffix == ".parquet":
        return need("pyarrow.parquet", "tables").ParquetWriter(file, schema)
    return pa.ipc.new_file(file, schema)


def csv_lines(chunk: Rows, delimiter: str, *, header: bool) -> str:
    """Return rows as lines of CSV."""
    # Python's csv module leaves a lone \r unquoted, and then does not read it back.
    special = re.compile(f'[{re.escape(delimiter)}"\\r\\n]|^$')
    rows = [chunk.names, *chunk.cells()] if header else chunk.cells()
    lines = []
    for row in rows:
        cells = (f'"{cell.replace(QUOTE, QUOTE * 2)}"' if special.search(cell) else cell for cell in row)
        lines.append(f"{delimiter.join(cells)}\n")
    return "".join(lines)


def plain(value: object) -> JsonValue:
    """Return a value of a table as a JSON value; types that JSON lacks become strings or null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    tolist = getattr(value, "tolist", None)  # arrays and numbers of numpy
    return plain(tolist()) if callable(tolist) else str(value)


def _cell(value: object) -> str:
    """Return a value as a cell of CSV: a missing one is empty, a list or a struct is JSON.

    >>> _cell(None), _cell("007"), _cell(1.5), _cell([{"start": 3}])
    ('', '007', '1.5', '[{"start": 3}]')
    """
    if value is None:
        return ""
    if isinstance(value, list | dict | bool):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(value)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
