"""``spanshot convert``: convert labelled text from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanshot.cli.console import note, visible
from spanshot.cli.new_app import new_app
from spanshot.cli.output import refuse_same_file
from spanshot.errors import ConfigError, DataError
from spanshot.formats.dropped import Dropped
from spanshot.formats.examples import read_documents
from spanshot.formats.guess import FORMATS, find_format
from spanshot.formats.table_files import is_table_file
from spanshot.formats.writing import write_documents

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".bioes": "conll",
    ".ann": "brat",
    ".spacy": "spacy",
    ".txt": "inline",
}
_NAMES = ", ".join(FORMATS)

app = new_app()


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File or brat folder to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write, or a new folder for brat.")],
    from_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help=f"Format of IN: {_NAMES}. Default: detected.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Format of OUT. Default: by the end of its name.")
    ] = None,
    scheme: Annotated[str, typer.Option(metavar="SCHEME", help="Tags of the format conll: io, bio or bioes.")] = "bio",
) -> None:
    """Convert labelled text from one format to another.

    Names that end with .jsonl, .txt (inline markup), .conll, .ann (brat), .spacy, .parquet, .arrow, .csv or .tsv need
    no --to. Items that the format of OUT cannot express are reported on standard error. Suggestions of a tagger
    become predictions in Label Studio, and unanswered tasks in Prodigy.
    """
    refuse_same_file("OUT", target, [source])
    name = find_format(to) if to else guess_output(target)
    read = read_documents(source, from_format)
    if not read.documents:
        raise DataError.at(source, None, f"no text to convert: {read.dropped.summary() or 'it is empty'}")
    not_written = write_documents(target, read.documents, name, scheme=scheme)
    dropped = Dropped((*read.dropped.omissions, *not_written.omissions))
    count = len(read.documents)
    print(visible(f"{target}: {count:,} {'text' if count == 1 else 'texts'} ({read.format} to {name})"))
    if dropped:
        note("; ".join(dropped.summary().splitlines()))


def guess_output(path: Path) -> str:
    """Return the format that belongs to a file name."""
    if is_table_file(path):
        return "table"
    name = SUFFIXES.get(path.suffix.lower())
    if name is None:
        raise ConfigError(f"cannot tell the format of {path} by its name; use --to FORMAT, one of {_NAMES}")
    return name
