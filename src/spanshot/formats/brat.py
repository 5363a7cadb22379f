"""brat's standoff format: a text in ``doc.txt``, and in ``doc.ann`` lines such as ``T1<tab>city 3 7<tab>Oslo``.

Offsets are code points. brat counts the end of a Windows line as one character, and cuts a span that crosses the end of
a line in two; such fragments are joined again. Every line of a text is an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from spanshot.errors import DataError
from spanshot.files import replacing
from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text, short
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.files import is_folder, lines_of, read_text
from spanshot.formats.json_values import Place
from spanshot.formats.offsets import OffsetTable, VisibleText, units_of

_FRAGMENTS = re.compile("[0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*")
_LINE = re.compile(r"[^\s\n](?:[^\n]*[^\s\n])?")
_NO_SPAN = re.compile(r"(?:[A-Za-z#][0-9]\S*|\*)\t")  # relations, events, attributes, notes: no spans


def is_brat(path: Path) -> bool:
    """Return whether the path is a folder, or one of a pair of files. Only names are checked."""
    if path.suffix == ".txt":
        try:
            return path.with_suffix(".ann").is_file()
        except (OSError, ValueError):
            return False
    return path.suffix == ".ann" or is_folder(path)


def read_brat(path: Path) -> Iterator[MarkedText | Drop]:
    """Read the documents of a folder and those below it, sorted by name; or one document, by either of its files."""
    if not is_folder(path):
        if not path.name:
            raise DataError.at(path, None, "is not a brat file; name a folder, a .ann file or a .txt file")
        yield _document(path.with_suffix(".ann"))
        return
    paths = sorted(path.rglob("*.ann"))
    if not paths:
        raise DataError.at(
            path, None, "the folder contains no .ann file; name a folder of .ann and .txt files, or one of them"
        )
    yield from map(_document, paths)


def _document(path: Path) -> MarkedText | Drop:
    text = read_text(path.with_suffix(".txt"), exact=True)
    gaps = _Gaps(text)
    items = []
    for number, line in lines_of(read_text(path)):
        if line.startswith("T"):
            items.append(_span(line, gaps, Place(path, number)))
        elif line.strip() and not _NO_SPAN.match(line):
            raise DataError.at(path, number, f"found {line[:40]!r}; expected an annotation such as T1<tab>city 3 7")
    return marked_text(text, items, Place(path.with_suffix(".txt")), by_line=True)


class _Gaps:
    """The white space of a text, in every unit that may count it."""

    def __init__(self, text: str) -> None:
        self._visible = VisibleText(text)
        self._tables = [OffsetTable(text, unit) for unit in units_of(text)]

    def __contains__(self, offsets: tuple[int, int]) -> bool:
        for table in self._tables:
            start, end = map(table.position, offsets)
            if start is not None and end is not None and self._visible.is_blank(start, end):
                return True
        return False


def _span(line: str, gaps: _Gaps, place: Place) -> CharSpan | Drop:
    _, _, content = line.partition("\t")
    marked, _, surface = content.partition("\t")
    label, _, offsets = marked.strip().partition(" ")
    if not label or not _FRAGMENTS.fullmatch(offsets):
        raise place.error(f"found {line[:40]!r}; expected T1<tab>LABEL START END<tab>TEXT")
    fragments = [(int(start), int(end)) for start, end in map(str.split, offsets.split(";"))]
    for (_, end), (start, _) in pairwise(fragments):
        if (end, start) not in gaps:
            return Drop(DropReason.IN_PIECES, str(place), f"{short(surface)} ({short(label, quote=False)})")
    return char_span(fragments[0][0], fragments[-1][1], label, place, surface.strip() or None)


def write_brat(path: str | Path, documents: Iterable[Document], log: DropLog) -> None:
    """Write one document of brat, or a folder with one for each document.

    A path that ends with .ann is one document: the annotations go there and the texts, one below the other, to the .txt
    file beside it; each line is read back as an example. Any other path is a folder, which is created: every text
    becomes a separate document, unchanged. Labels must not contain white space.
    """
    path = Path(path)
    if path.suffix == ".ann":
        _write_document(path, documents, log, end="\n")
        return
    if path.suffix == ".txt" or path.is_file() or (is_folder(path) and any(path.iterdir())):
        raise DataError.at(path, None, "brat needs a new folder, or the name of an .ann file")
    path.mkdir(exist_ok=True)
    for number, document in enumerate(documents, start=1):
        _write_document(path / f"{number:06d}.ann", [document], log, first=number)


def _write_document(path: Path, documents: Iterable[Document], log: DropLog, *, end: str = "", first: int = 1) -> None:
    start, count = 0, 0
    with replacing(path.with_suffix(".txt")) as texts, replacing(path) as annotations:
        for number, document in enumerate(documents, start=first):
            text, place = document.text, f"sentence {number}"
            if "\0" in text:
                raise DataError(f"{place} cannot be written: '\\x00' would not be read back")
            for mark in document.marks:
                surface = " ".join(text[mark.start : mark.end].split())
                if mark.label.split() != [mark.label] or "\0" in mark.label:
                    log.add(Drop(DropReason.LABEL, place, mark.described(text)))
                    continue
                count += 1
                fragments = ";".join(f"{start + a} {start + b}" for a, b in _fragments(text, mark.start, mark.end))
                annotations.write(f"T{count}\t{mark.label} {fragments}\t{surface}\n")
            line = text if text.endswith(end) else f"{text}{end}"
            texts.write(line)
            start += len(line)


def _fragments(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a span at line ends, without the white space around them."""
    for line in _LINE.finditer(text, start, end):
        yield line.span()
