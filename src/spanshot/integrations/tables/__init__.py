"""Tables in and out: pandas, polars, Arrow, Hugging Face datasets, and files of Parquet, Arrow and CSV."""

from spanshot.integrations.tables.frames import Table, tag_frame

__all__ = ["Table", "tag_frame"]
