"""Tag the texts in a column of a table: pandas, polars, Arrow or Hugging Face datasets.

A table comes back as the same kind of table, with all its columns and one more: the entities, as a list of structs (see
`schema`). A missing text gives a missing list. Streams (``pyarrow.RecordBatchReader``, ``datasets.IterableDataset``)
come back as streams, which tag their rows when they are read; a ``datasets.Dataset`` is written to its cache on disk.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from spanshot.errors import ConfigError, DataError, InputError
from spanshot.formats.json_values import JsonObject
from spanshot.formats.schema import arrow_type, datasets_type, polars_type, to_records
from spanshot.formats.table_files import ROWS, check_columns
from spanshot.integrations.notebook import progress as with_progress
from spanshot.optional import need
from spanshot.types import Entity

if TYPE_CHECKING:
    import datasets
    import pandas
    import polars
    import pyarrow

    from spanshot.tagger import Tagger

Table = TypeVar("Table")
Rows = list[list[JsonObject] | None]


def tag_frame(
    tagger: Tagger,
    table: Table,
    column: str = "text",
    output: str = "entities",
    *,
    because: bool = False,
    progress: bool = False,
) -> Table:
    """Return the table with one more column, ``output``: the entities of the texts in ``column``.

    ``because`` adds to each entity the examples that led to it. ``progress`` shows a progress bar.
    """
    kind = kind_of_table(table)
    if kind is None:
        raise InputError(
            f"expected a data frame (pandas, polars), an Arrow table or a dataset; found {type(table).__name__}"
        )
    column_job = _Column(tagger, column, output, because=because, progress=progress)
    return cast("Table", _ADD[kind](column_job, table))


def kind_of_table(table: object) -> str | None:
    """Return the kind of a table, by the name of its class, without importing the libraries."""
    for kind in type(table).__mro__:
        module = kind.__module__.partition(".")[0]
        name = f"{module}.{kind.__name__}"
        if name in _ADD:
            return name
    return None


def tag_texts(tagger: Tagger, texts: Iterable[object], first_row: int = 1) -> Iterator[list[Entity] | None]:
    """Yield the entities of each text; None for a missing text. ``first_row`` is its number in errors."""
    missing: list[int] = []

    def present() -> Iterator[str]:
        for row, text in enumerate(texts, start=first_row):
            if isinstance(text, str):
                yield text
            elif _is_missing(text):
                missing.append(row)
            else:
                raise DataError(f"row {row}: expected a text; found {type(text).__name__}")

    row = first_row
    for entities in tagger.pipe(present()):
        while missing and missing[0] == row:
            missing.pop(0)
            row += 1
            yield None
        yield entities
        row += 1
    yield from (None for _ in missing)


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))


@dataclass(frozen=True)
class _Column:
    """The column to add to a table."""

    tagger: Tagger
    column: str
    output: str
    because: bool = False
    progress: bool = False

    def rows(self, texts: Iterable[object], total: int | None = None, first_row: int = 1) -> Rows:
        """Return the entities of each text, as records."""
        results: Iterable[list[Entity] | None] = tag_texts(self.tagger, texts, first_row)
        if self.progress:
            results = with_progress(results, total)
        return [None if entities is None else to_records(entities, because=self.because) for entities in results]

    def to_pandas(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        pa, pd = need("pyarrow", "tables"), need("pandas", "tables")
        check_columns(frame.columns, self.column, self.output)
        texts = frame[self.column]
        if texts.ndim != 1:
            raise ConfigError(f"there are several columns {self.column!r}; rename all but one")
        entities = pa.array(self.rows(texts, len(frame)), arrow_type(because=self.because))
        result = frame.copy(deep=False)
        result[self.output] = pd.Series(pd.arrays.ArrowExtensionArray(entities), index=frame.index)
        return result

    def to_polars(self, frame: polars.DataFrame) -> polars.DataFrame:
        pl = need("polars", "tables")
        check_columns(frame.columns, self.column, self.output)
        rows = self.rows(frame[self.column], frame.height)
        return frame.with_columns(pl.Series(self.output, rows, dtype=polars_type(because=self.because)))

    def to_lazy_polars(self, frame: polars.LazyFrame) -> polars.LazyFrame:
        schema = frame.collect_schema()
        check_columns(schema.names(), self.column, self.output)
        schema = {**schema, self.output: polars_type(because=self.because)}
        # Filters and selections must not remove the column of texts before it is tagged.
        return frame.map_batches(self.to_polars, predicate_pushdown=False, projection_pushdown=False, schema=schema)

    def to_arrow(self, table: pyarrow.Table) -> pyarrow.Table:
        """Add the column to a table or a record batch."""
        pa = need("pyarrow", "tables")
        check_columns(table.schema.names, self.column, self.output)
        kind = arrow_type(because=self.because)
        texts = (scalar.as_py() for scalar in table.column(self.column))
        entities = pa.array(self.rows(texts, table.num_rows), kind)
        return table.append_column(pa.field(self.output, kind), entities)

    def to_arrow_stream(self, reader: pyarrow.RecordBatchReader) -> pyarrow.RecordBatchReader:
        pa = need("pyarrow", "tables")
        check_columns(reader.schema.names, self.column, self.output)
        kind = arrow_type(because=self.because)

        def batches() -> Iterator[pyarrow.RecordBatch]:
            row = 1
            for batch in reader:
                for start in range(0, batch.num_rows, ROWS):
                    part = batch.slice(start, ROWS)
                    rows = self.rows((scalar.as_py() for scalar in part.column(self.column)), part.num_rows, row)
                    row += part.num_rows
                    yield part.append_column(pa.field(self.output, kind), pa.array(rows, kind))

        return pa.RecordBatchReader.from_batches(reader.schema.append(pa.field(self.output, kind)), batches())

    def to_dataset(self, dataset: datasets.Dataset) -> datasets.Dataset:
        """Add the column to a dataset or a stream of one."""
        package = need("datasets", "tables")
        if dataset.column_names is not None:
            check_columns(dataset.column_names, self.column, self.output)
        features = None
        if dataset.features is not None:
            features = package.Features({**dataset.features, self.output: datasets_type(because=self.because)})

        def tag(batch: Mapping[str, Sequence[object]], indices: Sequence[int]) -> dict[str, Rows]:
            return {self.output: self.rows(batch[self.column], len(indices), indices[0] + 1)}

        options: dict[str, object] = {"batched": True, "batch_size": ROWS, "with_indices": True, "features": features}
        if isinstance(dataset, package.Dataset):
            # A fingerprint of our own: the default one would pickle the whole model.
            options |= {"load_from_cache_file": False, "new_fingerprint": secrets.token_hex(8)}
        return dataset.map(tag, **options)

    def to_datasets(self, splits: datasets.DatasetDict) -> datasets.DatasetDict:
        return type(splits)({name: self.to_dataset(dataset) for name, dataset in splits.items()})


_ADD: dict[str, Callable[[_Column, object], object]] = {
    "pandas.DataFrame": _Column.to_pandas,
    "polars.DataFrame": _Column.to_polars,
    "polars.LazyFrame": _Column.to_lazy_polars,
    "pyarrow.Table": _Column.to_arrow,
    "pyarrow.RecordBatch": _Column.to_arrow,
    "pyarrow.RecordBatchReader": _Column.to_arrow_stream,
    "datasets.Dataset": _Column.to_dataset,
    "datasets.IterableDataset": _Column.to_dataset,
    "datasets.DatasetDict": _Column.to_datasets,
    "datasets.IterableDatasetDict": _Column.to_datasets,
}
