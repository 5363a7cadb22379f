"""The plan of a corpus job: which rows become which output file. It follows from inputs and settings alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spanshot.corpus.inputs import FileKind
from spanshot.corpus.scan import InputFile
from spanshot.corpus.settings import CorpusSettings
from spanshot.errors import ConfigError


@dataclass(frozen=True)
class Part:
    """A range of rows of an input file, which becomes one output file."""

    number: int
    file: str
    """The input file."""
    start: int
    """The first row, from 0 on."""
    end: int
    """One past the last row."""
    name: str
    """The name of the output file, without its suffix."""
    stamp: str = ""
    """Size and time of the input file when it was scanned."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.end - self.start


def make_plan(files: Sequence[InputFile], settings: CorpusSettings) -> list[Part]:
    """Cut each file into parts of at most ``settings.rows`` rows."""
    parts: list[Part] = []
    for number, file in enumerate(files):
        for start in range(0, file.rows, settings.rows):
            end = min(start + settings.rows, file.rows)
            name = f"part-{number:05}-{start // settings.rows:06}"
            parts.append(Part(len(parts), file.name, start, end, name, file.stamp))
    return parts


def check_formats(names: Sequence[str], settings: CorpusSettings) -> str:
    """Return the format of the output; raise an error if the inputs are of several formats."""
    formats = sorted({FileKind.of(name).format for name in names})
    if len(formats) > 1:
        raise ConfigError(
            f"the inputs are of several formats ({', '.join(formats)}); tag each format in a job of its own"
        )
    if formats == ["jsonl"]:
        if settings.to not in ("", "jsonl"):
            raise ConfigError(
                f"JSON lines cannot be written as {settings.to}, as their fields have no fixed types; leave out the "
                "output format, or convert the inputs first"
            )
        return "jsonl"
    return settings.to or "parquet"
