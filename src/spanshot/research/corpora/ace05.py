"""ACE 2005 (Walker et al. 2006, LDC2006T06), for those who have a licence: English text with nested entity mentions."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator
from pathlib import Path

from spanshot.errors import DataError
from spanshot.formats.files import MAX_WORDS, read_text
from spanshot.types import Sentence, Span
from spanshot.words import words_of

TYPES = ("FAC", "LOC", "ORG", "PER")
"""The types of ESD's paper: none of them is in the training types of Few-NERD INTRA."""
FINAL = "timex2norm"
"""The folder of the release with the final annotations; others contain earlier passes over the same documents."""
_MARKUP = re.compile(r"<[^>]*>")
_BOUNDARY = re.compile(r"\n\s*\n\s*|(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z])")

Mention = tuple[int, int, str]
"""Start and end (exclusive) in characters, and the label."""


def read_ace05(folder: str | Path, types: Collection[str] = TYPES) -> list[Sentence]:
    """Read all documents below a folder: pairs of ``NAME.sgm`` (text) and ``NAME.apf.xml`` (annotations).

    A label is TYPE-SUBTYPE, such as ``ORG-Commercial``; a span is the whole extent of a mention, so mentions nest. The
    release has plain text: sentences end at blank lines and at punctuation before a capital letter, but never within a
    mention.
    """
    folder = Path(folder)
    files = sorted(folder.rglob("*.apf.xml"))
    files = [path for path in files if FINAL in path.parts] or files
    if not files:
        raise DataError.at(folder, None, "contains no *.apf.xml file; expected the English part of ACE 2005")
    sentences: list[Sentence] = []
    for path in files:
        text = _text_of(path.with_name(path.name.removesuffix(".apf.xml") + ".sgm"))
        sentences += _sentences(text, [m for m in _mentions(path, types) if m[1] <= len(text)])
    return sentences


def _text_of(path: Path) -> str:
    """Return a document without markup: offsets count characters outside of tags, and line ends as one."""
    return _MARKUP.sub("", read_text(path))


def _mentions(path: Path, types: Collection[str]) -> Iterator[Mention]:
    try:
        root = ET.fromstring(read_text(path))
    except ET.ParseError as error:
        raise DataError.at(path, error.position[0], "is not valid XML") from None
    for entity in root.iter("entity"):
        if entity.get("TYPE") not in types:
            continue
        label = f"{entity.get('TYPE')}-{entity.get('SUBTYPE', 'other')}"
        for place in entity.iterfind("entity_mention/extent/charseq"):
            try:
                start, last = int(place.get("START", "")), int(place.get("END", ""))
            except ValueError:
                raise DataError.at(path, None, "a charseq needs the numbers START and END") from None
            yield start, last + 1, label


def _sentences(text: str, mentions: list[Mention]) -> Iterator[Sentence]:
    inside = [(start, end) for start, end, _ in mentions]
    ends = [
        match.end() for match in _BOUNDARY.finditer(text) if not any(start < match.end() < end for start, end in inside)
    ]
    for begin, end in zip([0, *ends], [*ends, len(text)], strict=True):
        words = words_of(text[begin:end])
        if not 0 < len(words) <= MAX_WORDS:
            continue
        spans = set()
        for start, stop, label in mentions:
            covered = [n for n, word in enumerate(words) if begin + word.start < stop and begin + word.end > start]
            if covered:
                spans.add(Span(covered[0], covered[-1] + 1, label))
        yield Sentence(tuple(word.text for word in words), tuple(sorted(spans)))
