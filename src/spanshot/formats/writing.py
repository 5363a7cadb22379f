"""Write examples and the results of taggers in any format that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spanshot.errors import DataError
from spanshot.files import write_text
from spanshot.formats.brat import write_brat
from spanshot.formats.columns import render_conll
from spanshot.formats.docbin import write_docbin
from spanshot.formats.doccano import render_doccano
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, Dropped, DropReason
from spanshot.formats.guess import find_format
from spanshot.formats.inline import render_inline
from spanshot.formats.jsonl import render_jsonl
from spanshot.formats.label_studio import render_label_studio
from spanshot.formats.prodigy import render_prodigy
from spanshot.formats.tables import write_table
from spanshot.tags import find_scheme
from spanshot.types import Sentence

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class TextFormat:
    """A format that is written document by document, so that any number can be streamed."""

    render: Callable[[Document, str, DropLog], str]
    """Return the part of the file for a document. The second argument names it in errors and reports."""
    scores: bool = False
    """The format can store scores."""
    fields: bool = False
    """The format can store other fields."""
    rejections: bool = False
    """The format can store rejected spans and the list of annotated labels."""
    head: str = ""
    between: str = ""
    foot: str = ""


@dataclass(frozen=True)
class FileFormat:
    """A format whose files are written as a whole."""

    write: Callable[[Path, Iterable[Document], DropLog], None]
    scores: bool = False
    fields: bool = False
    rejections: bool = False


FORMATS: dict[str, TextFormat | FileFormat] = {
    "inline": TextFormat(render_inline),
    "jsonl": TextFormat(render_jsonl, scores=True, fields=True, rejections=True),
    "conll": TextFormat(render_conll),
    "label-studio": TextFormat(render_label_studio, scores=True, fields=True, head="[\n", between=",\n", foot="\n]\n"),
    "doccano": TextFormat(render_doccano, fields=True),
    "prodigy": TextFormat(render_prodigy, scores=True, fields=True),
    "brat": FileFormat(write_brat),
    "spacy": FileFormat(write_docbin, scores=True),
    "table": FileFormat(write_table, scores=True),
}


def output_format(name: str, scheme: str = "bio") -> TextFormat | FileFormat:
    """Return the format of that name. ``scheme`` is the tag scheme of conll: io, bio or bioes."""
    name = find_format(name)
    if name == "conll":
        return TextFormat(partial(render_conll, scheme=find_scheme(scheme).name))
    return FORMATS[name]


class Renderer:
    """Turns documents into the parts of a file, and counts what the format cannot express."""

    def __init__(self, format: TextFormat | FileFormat, log: DropLog) -> None:
        self.format = format
        self.log = log

    def checked(self, document: Document, place: str) -> Document:
        """Report scores, other fields and rejections that the format cannot store."""
        if not self.format.scores and (scores := sum(mark.score is not None for mark in document.marks)):
            self.log.add(Drop(DropReason.NO_PLACE, place, item="score"), scores)
        if not self.format.fields and document.fields:
            self.log.add(Drop(DropReason.NO_PLACE, place, item="field"), len(document.fields))
        if not self.format.rejections and document.rejected:
            self.log.add(Drop(DropReason.NO_PLACE, place, item="rejected span"), len(document.rejected))
        if not self.format.rejections and document.annotated is not None:
            self.log.add(Drop(DropReason.NO_PLACE, place, item="list of annotated labels"))
        return document

    def part(self, document: Document, place: str, *, first: bool) -> str:
        """Return the part for a document, with the head of the file or the separator before it."""
        assert isinstance(self.format, TextFormat)
        try:
            part = self.format.render(self.checked(document, place), place, self.log)
        except DataError as error:
            message = str(error)
            raise DataError(message if message.startswith(place) else f"{place} cannot be written: {message}") from None
        if first and not self.format.head and part.startswith(_BYTE_ORDER_MARK):
            raise DataError(f"{place} cannot be written: {_BYTE_ORDER_MARK!r} would not be read back")
        return f"{self.format.head if first else self.format.between}{part}"

    def end(self, *, empty: bool) -> str:
        """Return the end of the file."""
        assert isinstance(self.format, TextFormat)
        return f"{self.format.head if empty else ''}{self.format.foot}"


def write_documents(path: str | Path, documents: Iterable[Document], format: str, *, scheme: str = "bio") -> Dropped:
    """Write documents to a file and return what the format cannot express. See `write_examples`."""
    path = Path(path)
    renderer = Renderer(output_format(format, scheme), DropLog())
    numbered = ((f"sentence {number}", document) for number, document in enumerate(documents, start=1))
    try:
        if isinstance(renderer.format, FileFormat):
            checked = (renderer.checked(document, place) for place, document in numbered)
            renderer.format.write(path, checked, renderer.log)
        else:
            write_text(path, _parts(renderer, numbered))
    except DataError as error:
        message = str(error)
        raise DataError.at(path, None, message) if message.startswith("sentence ") else error from None
    return renderer.log.dropped()


def _parts(renderer: Renderer, numbered: Iterable[tuple[str, Document]]) -> Iterator[str]:
    empty = True
    for place, document in numbered:
        yield renderer.part(document, place, first=empty)
        empty = False
    yield renderer.end(empty=empty)


def write_examples(
    path: str | Path, sentences: Iterable[Sentence], format: str = "jsonl", *, scheme: str = "bio"
) -> Dropped:
    """Write sentences to a file and return what the format cannot express.

    ``scheme`` is the tag scheme of conll: io, bio or bioes. brat is written to an .ann file or a new folder. The
    file name decides the kind of a table: .parquet, .arrow, .csv or .tsv.
    """
    return write_documents(path, map(Document.of, sentences), format, scheme=scheme)
