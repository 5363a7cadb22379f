"""Tag a column of a table and write the table with one more column.

The rows go through the same partial file as lines do, so an interrupted job can be resumed. Parquet and Arrow files
cannot be continued once they are cut off; so their rows are first written as a sequence of small Arrow streams, which
can, and converted when all rows are tagged.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spanshot.allocator import steady
from spanshot.cli.console import counted, note
from spanshot.cli.output import PartialFile, Progress
from spanshot.errors import ConfigError, DataError
from spanshot.formats.schema import to_records
from spanshot.formats.table_files import (
    DELIMITERS,
    ArrowRows,
    Rows,
    check_columns,
    csv_lines,
    is_table_file,
    read_rows,
    write_table_file,
)
from spanshot.integrations.tables import tag_texts
from spanshot.optional import need

if TYPE_CHECKING:
    from spanshot.tagger import Tagger

ENTITIES = "entities"


@dataclass(frozen=True)
class TableJob:
    """Tags the texts in a column of a file."""

    tagger: Tagger
    source: Path
    column: str
    because: bool = False

    def run(self, output: Path, job: str, *, resume: bool, quiet: bool = False) -> None:
        """Write the table with the entities to ``output``; ``job`` identifies the job for ``resume``."""
        delimiter = DELIMITERS.get(output.suffix.lower())
        if delimiter is None:
            need("pyarrow", "tables")
        results = PartialFile(output, job, resume=resume)
        if results.discarded:
            note(f"discarded {results.discarded:,} rows of an interrupted job (--resume would have continued it)")
        try:
            for _ in counted(steady(self._rows(results, delimiter)), quiet=quiet):
                pass
            if delimiter is None:
                results.finish_as(lambda read, write: write_table_file(output, write, _stored(read)))
            else:
                results.finish()
        except BaseException:
            if saved := results.stop():
                note(f"kept the results of {saved:,} rows; continue with --resume")
            raise

    def _rows(self, results: PartialFile, delimiter: str | None) -> Iterator[None]:
        """Tag the rows that are not done yet, a chunk at a time, and yield once for each."""
        progress: Progress = results.done
        rows, digest = 0, hashlib.sha256()
        for chunk in read_rows(self.source):
            check_columns(chunk.names, self.column, ENTITIES)
            texts = chunk.column(self.column)
            for text in texts:
                digest.update(f"{len(text)} {text}".encode("utf-8", "surrogatepass") if isinstance(text, str) else b"-")
            already = min(len(chunk), max(0, progress.inputs - rows))
            if rows + already == progress.inputs and already == len(chunk) and digest.hexdigest() != progress.digest:
                raise ConfigError("cannot resume: the input has changed since the interrupted job; leave out --resume")
            first, rows = rows + already, rows + len(chunk)
            if already and already == len(chunk):
                continue
            if already:
                raise ConfigError("cannot resume: the input has changed since the interrupted job; leave out --resume")
            column = []
            for entities in tag_texts(self.tagger, texts, first + 1):
                column.append(None if entities is None else to_records(entities, because=self.because))
                yield
            if delimiter is None:
                typed = ArrowRows(chunk.arrow()).with_entities(ENTITIES, column, because=self.because)
                results.add_bytes(_stream(typed))
            else:
                tagged = chunk.with_entities(ENTITIES, column, because=self.because)
                results.add(csv_lines(tagged, delimiter, header=first == 0))
            results.save(rows, digest.hexdigest())
        if rows < progress.inputs:
            raise ConfigError(
                f"cannot resume: the input has {rows} rows, but {progress.inputs} were done before; leave out --resume"
            )


def _stream(rows: Rows) -> bytes:
    """Return rows as an Arrow stream."""
    pa = need("pyarrow", "tables")
    batch = rows.arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def _stored(file: BinaryIO) -> Iterator[Rows]:
    """Read the streams that were written one after the other."""
    pa = need("pyarrow", "tables")
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    while file.tell() < end:
        yield from map(ArrowRows, pa.ipc.open_stream(file))


def refuse_other_inputs(output: Path, files: list[Path], texts: list[str]) -> Path:
    """Return the one table that is the input; a table cannot be made of anything else."""
    if texts or len(files) != 1 or not is_table_file(files[0]):
        raise ConfigError(
            f"{output} is a table, so the input must be one table (.parquet, .arrow, .csv, .tsv): use --input FILE"
        )
    if not files[0].is_file():
        raise DataError.at(files[0], None, "no such file")
    return files[0]
