"""Tables in and out: pandas, polars, Arrow, Hugging Face datasets, and files of Parquet, Arrow and CSV."""

from spanshot.formats.examples import examples_of_table
from spanshot.formats.tables import Columns
from spanshot.integrations.tables.frames import Table, tag_frame, tag_texts

__all__ = ["Columns", "Table", "examples_of_table", "tag_frame", "tag_texts"]
