"""brat's standoff: a text in ``doc.txt``, and in ``doc.ann`` lines such as ``T1<tab>city 3 7<tab>Oslo``.

Offsets are code points. brat counts the end of a Windows line as one character, and cuts a span that runs over the end
of a line in two; such fragments are joined again. Every line of a text is an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from spanshot.errors import DataError
from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.dropped import Drop, DropReason
from spanshot.formats.files import read_text
from spanshot.formats.json_values import Place
from spanshot.formats.offsets import units_of

_FRAGMENTS = re.compile("[0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*")
_OTHERS = re.compile(r"(?:[A-Za-z#][0-9]+\S*|\*)\t")  # relations, events, attributes, notes: no spans


def is_brat(path: Path) -> bool:
    """Whether the path is a folder, or one of a pair of files: told by name, since texts may be anything."""
    return path.is_dir() or path.suffix == ".ann" or (path.suffix == ".txt" and path.with_suffix(".ann").is_file())


def marked_by_brat(path: Path) -> Iterator[MarkedText | Drop]:
    """The documents of a folder and those below it, in the order of their names; or one, by either of its files."""
    if not path.is_dir():
        yield _document(path.with_suffix(".ann"))
        return
    found = sorted(path.rglob("*.ann"))
    if not found:
        raise DataError.at(path, None, "the folder holds no .ann file; name a folder as brat writes it, or a file")
    yield from map(_document, found)


def _document(path: Path) -> MarkedText | Drop:
    text = read_text(path.with_suffix(".txt"), exact=True)
    found = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.startswith("T"):
            found.append(_span(line, text, Place(path, number)))
        elif line.strip() and not _OTHERS.match(line):
            raise DataError.at(path, number, f"found {line[:40]!r}; expected an annotation such as T1<tab>city 3 7")
    return marked_text(text, found, Place(path.with_suffix(".txt")), by_line=True)


def _span(line: str, text: str, place: Place) -> CharSpan | Drop:
    _, _, rest = line.partition("\t")
    marked, _, surface = rest.partition("\t")
    label, _, offsets = marked.strip().partition(" ")
    if not label or not _FRAGMENTS.fullmatch(offsets):
        raise place.error(f"found {line[:40]!r}; expected T1<tab>LABEL START END<tab>TEXT")
    fragments = [(int(start), int(end)) for start, end in map(str.split, offsets.split(";"))]
    for (_, end), (start, _) in pairwise(fragments):
        if not _is_gap(text, end, start):
            return Drop(DropReason.IN_PIECES, str(place), f"{surface[:30]!r} ({label})")
    return char_span(fragments[0][0], fragments[-1][1], label, place, surface.strip() or None)


def _is_gap(text: str, start: int, end: int) -> bool:
    """Whether only white space stands there, in some way to count."""
    for unit in units_of(text):
        positions = unit.positions(text)
        known = start <= end and start in positions and end in positions
        if known and not text[positions[start] : positions[end]].strip():
            return True
    return False
