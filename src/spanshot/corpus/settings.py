"""The settings of a corpus job: all that its output depends on, besides the tagger and the inputs."""

from __future__ import annotations

from dataclasses import dataclass

from spanshot.errors import ConfigError

BLOCK = 256
"""Rows that are tagged together. Blocks start at fixed rows of a file, so scores do not depend on other settings."""
BLOCK_CHARACTERS = 100_000
"""A block with more characters is tagged in several steps, to bound the memory."""
FORMATS = ("parquet", "csv", "jsonl")
"""Formats of the output."""


@dataclass(frozen=True)
class CorpusSettings:
    """The settings of a corpus job. An interrupted job continues only with the same ones."""

    column: str = "text"
    """Column or field with the texts."""
    entities: str = "entities"
    """Name of the new column."""
    to: str = ""
    """Format of the output: parquet, csv or jsonl. Default: Parquet for tables, JSON lines for JSON lines."""
    rows: int = 4096
    """Rows per output file, a multiple of 256. A worker that dies loses the work on at most so many rows."""
    max_characters: int = 1_000_000
    """Longer texts are not tagged; they go to the failed rows."""

    def __post_init__(self) -> None:
        problems = []
        if self.rows < BLOCK or self.rows % BLOCK:
            problems.append(f"rows must be a multiple of {BLOCK}; found {self.rows}")
        if self.max_characters < 1:
            problems.append(f"max_characters must be at least 1; found {self.max_characters}")
        if self.to and self.to not in FORMATS:
            problems.append(f"the output format must be one of {', '.join(FORMATS)}; found {self.to!r}")
        if not self.column or not self.entities or self.column == self.entities:
            problems.append("the columns of texts and entities must have two different names")
        if problems:
            raise ConfigError("; ".join(problems))
