"""Rows of input files, in blocks that start at fixed rows. A reader keeps its place, so files are read forward once."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, TypeVar

from spanshot.corpus.inputs import FileKind, decompressed, open_file, reading, stamp_of
from spanshot.corpus.settings import BLOCK
from spanshot.errors import DataError
from spanshot.formats.table_files import ArrowRows, BadRow, CsvRows, Rows, TextRows
from spanshot.json_text import Fields, JsonObject, parse_json
from spanshot.optional import need

if TYPE_CHECKING:
    import pyarrow

Item = TypeVar("Item")
RawBlock: TypeAlias = "list[bytes] | list[list[str] | BadRow] | ArrowRows"
"""Rows before they are parsed: rows that are skipped need not be."""
LONGEST_LINE = 1 << 26
"""Bytes of the longest line of JSON that is read."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class JsonRows:
    """Rows of a file of JSON lines."""

    rows: list[JsonObject]

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[object]:
        """Return the values of a field; None where it is missing."""
        return [row.get(name) for row in self.rows]

    def records(self) -> list[JsonObject]:
        """Return the rows."""
        return self.rows

    def take(self, places: Iterable[int]) -> JsonRows:
        """Return the rows at these places."""
        return JsonRows([self.rows[place] for place in places])


@dataclass(frozen=True)
class BadInput:
    """A row that cannot be read."""

    row: int
    problem: str
    content: JsonObject
    """The row, as far as it could be read."""


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a file, at most `BLOCK`."""

    rows: Rows | JsonRows
    """The rows that could be read."""
    numbers: list[int]
    """Their numbers in the file, from 0 on."""
    bad: list[BadInput] = field(default_factory=list)


class RowReader:
    """Reads ranges of rows. Ranges of one file that are asked for in order are read in one pass."""

    def __init__(self) -> None:
        self._name = ""
        self._place = 0
        self._blocks: Iterator[RawBlock] = iter(())
        self._names: list[str] = []
        self._starts: list[int] = [0]
        self._open = ExitStack()

    def read(self, name: str, start: int, end: int, stamp: str = "") -> Iterator[Block]:
        """Yield the rows from ``start``, a multiple of `BLOCK`, up to ``end``.

        ``stamp`` is the one that the file must still have; see `stamp_of`.
        """
        with reading(name):
            self._move(name, start, stamp)
            while self._place < end:
                first, raw = self._place, self._next()
                yield self._parsed(raw, first)

    def close(self) -> None:
        """Close the open file."""
        self._open.close()
        self._name = ""

    def _move(self, name: str, start: int, stamp: str) -> None:
        jump = max(first for first in self._starts if first <= start)  # row groups can be opened without the others
        if name != self._name or self._place > start or (self._place < jump):
            self.close()
            if stamp and stamp_of(name) != stamp:
                raise DataError.at(name, None, "has changed during the job; restore it, or start a new job")
            self._place = self._start(name, start)
            self._name = name
        while self._place < start:
            self._next()

    def _next(self) -> RawBlock:
        raw = next(self._blocks, None)
        if raw is None:
            raise DataError.at(self._name, None, f"has only {self._place:,} rows; it has changed during the job")
        self._place += len(raw)
        return raw

    def _start(self, name: str, start: int) -> int:
        """Open a file at a row at or before ``start``; return its number."""
        kind = FileKind.of(name)
        raw = self._open.enter_context(open_file(name))
        if kind.format == "parquet":
            file = self._open.enter_context(open_parquet(name, raw))
            self._starts = _row_groups(file)
            group = max(number for number, first in enumerate(self._starts) if first <= start)
            self._blocks = _arrow_blocks(file, group, start - self._starts[group])
            return start
        self._starts = [0]
        content = decompressed(raw, kind)
        if kind.format == "csv":
            rows = open_csv(name, content, kind)
            self._names, self._blocks = rows.names, blocks(rows)
        else:
            self._blocks = blocks(json_lines(content))
        return 0

    def _parsed(self, raw: RawBlock, first: int) -> Block:
        if isinstance(raw, ArrowRows):
            return Block(raw, list(range(first, first + len(raw))))
        numbers: list[int] = []
        bad: list[BadInput] = []
        cells: list[list[str]] = []
        records: list[JsonObject] = []
        for number, row in enumerate(raw, start=first):
            if isinstance(row, BadRow):
                bad.append(BadInput(number, row.problem, {"cells": row.cells}))
                continue
            if isinstance(row, bytes):
                parsed = _record(row, number)
                if isinstance(parsed, BadInput):
                    bad.append(parsed)
                    continue
                records.append(parsed)
            elif is_unicode("".join(row)):
                cells.append(row)
            else:
                bad.append(BadInput(number, "not UTF-8 text", {"cells": row}))
                continue
            numbers.append(number)
        is_json = FileKind.of(self._name).format == "jsonl"
        return Block(JsonRows(records) if is_json else TextRows(self._names, cells), numbers, bad)


def _record(line: bytes, number: int) -> JsonObject | BadInput:
    """Parse a line of JSON."""
    text = line.decode("utf-8", "backslashreplace")
    if len(line) > LONGEST_LINE:
        return BadInput(number, f"the line is longer than {LONGEST_LINE:,} bytes", {"line": text[:1000]})
    try:
        line.decode("utf-8")
        return Fields.of(parse_json(text)).record
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte 0x{line[error.start]:02x} at position {error.start + 1})"
        return BadInput(number, problem, {"line": text})
    except DataError as error:
        return BadInput(number, str(error), {"line": text})


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, so that it can be written."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def json_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file that are not blank. A line that is too long is cut to one byte too many."""
    first = True
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(LONGEST_LINE)
        line = line.removeprefix(_BYTE_ORDER_MARK) if first else line
        first = False
        if line.strip():
            yield line.rstrip(b"\r\n") if len(line) <= LONGEST_LINE else line


def open_csv(name: str, content: BinaryIO, kind: FileKind) -> CsvRows:
    """Return the rows of an open CSV file. Bytes that are not UTF-8 become lone surrogates."""
    text = io.TextIOWrapper(content, encoding="utf-8-sig", errors="surrogateescape", newline="")
    return CsvRows(text, kind.delimiter, name)


def open_parquet(name: str, file: BinaryIO) -> pyarrow.parquet.ParquetFile:
    """Open a Parquet file."""
    pa, parquet = need("pyarrow", "tables"), need("pyarrow.parquet", "tables")
    try:
        return parquet.ParquetFile(file)
    except pa.ArrowException as error:
        problem = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError.at(name, None, f"is not a readable Parquet file: {problem}") from error


def _row_groups(file: pyarrow.parquet.ParquetFile) -> list[int]:
    """Return the first row of each row group."""
    starts = [0]
    for number in range(file.metadata.num_row_groups - 1):
        starts.append(starts[-1] + file.metadata.row_group(number).num_rows)
    return starts


def _arrow_blocks(file: pyarrow.parquet.ParquetFile, group: int, skip: int) -> Iterator[ArrowRows]:
    """Yield blocks of rows, from a row of a row group on."""
    groups = list(range(group, file.metadata.num_row_groups))
    waiting: list[pyarrow.RecordBatch] = []
    count = 0
    for batch in file.iter_batches(batch_size=BLOCK, row_groups=groups) if groups else ():
        batch, skip = batch.slice(skip), max(0, skip - batch.num_rows)
        while batch.num_rows:
            part, batch = batch.slice(0, BLOCK - count), batch.slice(BLOCK - count)
            waiting.append(part)
            count += part.num_rows
            if count == BLOCK:
                yield _joined(waiting, file.schema_arrow)
                waiting, count = [], 0
    if waiting:
        yield _joined(waiting, file.schema_arrow)


def _joined(batches: list[pyarrow.RecordBatch], schema: pyarrow.Schema) -> ArrowRows:
    """Join batches to one, with the metadata of the file, where datasets keep the names of labels."""
    if len(batches) > 1:
        table = need("pyarrow", "tables").Table.from_batches(batches).combine_chunks()
        batches = table.to_batches()
    return ArrowRows(batches[0].replace_schema_metadata(schema.metadata))


def blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield items in lists of `BLOCK`."""
    items = iter(items)
    while block := list(islice(items, BLOCK)):
        yield block
