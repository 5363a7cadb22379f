"""Scan input files before a job: count their rows, compute their digests and check their columns."""

from __future__ import annotations

from dataclasses import dataclass
from io import BufferedReader
from typing import cast

from spanshot.corpus.inputs import FileKind, HashedFile, decompressed, open_file, reading, stamp_of
from spanshot.corpus.rows import json_lines, open_csv, open_parquet
from spanshot.corpus.settings import CorpusSettings
from spanshot.errors import ConfigError, DataError
from spanshot.formats.table_files import check_columns


@dataclass(frozen=True)
class InputFile:
    """An input file as it was when the job began."""

    name: str
    rows: int
    sha256: str
    stamp: str
    """Size and time; while they stay the same, the file is not read again to check its digest."""


def scan(name: str, settings: CorpusSettings) -> InputFile:
    """Read a file once. Rows that cannot be read count as rows."""
    kind, stamp = FileKind.of(name), stamp_of(name)
    with reading(name), open_file(name) as raw:
        if kind.format == "parquet":
            with open_parquet(name, raw) as table:
                rows: int = table.metadata.num_rows
                _check(name, table.schema_arrow.names, settings)
            with open_file(name) as again:
                return InputFile(name, rows, HashedFile(again).finish(), stamp)
        hashed = HashedFile(raw)
        content = decompressed(cast("BufferedReader", BufferedReader(hashed, 1 << 20)), kind)
        if kind.format == "csv":
            table_rows = open_csv(name, content, kind)
            _check(name, table_rows.names, settings)
            rows = sum(1 for _ in table_rows)
        else:
            rows = sum(1 for _ in json_lines(content))
        return InputFile(name, rows, hashed.finish(), stamp)


def _check(name: str, columns: list[str], settings: CorpusSettings) -> None:
    try:
        check_columns(columns, settings.column, settings.entities)
    except ConfigError as error:
        raise DataError.at(name, None, str(error)) from None
