"""CoNLL-style columns: a word and its tag on each line, a blank line between sentences."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from spanshot.errors import ConfigError, DataError
from spanshot.files import write_text
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.files import MAX_WORDS, lines_of, read_text, too_long
from spanshot.tags import find_scheme, guess_scheme, outermost, spans_from_tags, tags_from_spans, unknown_tag
from spanshot.types import Sentence, Span

LabelColumn = Literal["first", "last"]

_SPACES = re.compile(" +")
_TABS = re.compile("\t+")
_DOCUMENT_START = "-DOCSTART-"
_BYTE_ORDER_MARK = "\ufeff"
# Positions of the word and of the tag. Columns between them (part of speech, chunk) are not read.
_POSITIONS = {"last": (0, -1), "first": (1, 0)}


@dataclass(slots=True)
class _Block:
    """The words and tags of one sentence, and the numbers of their lines."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    lines: array[int] = field(default_factory=lambda: array("Q"))


def read_columns(
    path: str | Path, *, scheme: str | None = None, label_column: LabelColumn = "last", strict: bool = False
) -> list[Sentence]:
    """Read the sentences of a column file. Without ``scheme``, guess it from the tags.

    Columns are separated by tabs, or by spaces in lines without a tab. ``-DOCSTART-`` lines are skipped; a line that
    begins with ``#`` is not, since that may be a word.
    """
    return parse_columns(read_text(path), path, scheme=scheme, label_column=label_column, strict=strict)


def parse_columns(
    text: str,
    path: str | Path,
    *,
    scheme: str | None = None,
    label_column: LabelColumn = "last",
    strict: bool = False,
) -> list[Sentence]:
    """Parse the text of a column file, as ``read_columns`` does. ``path`` names the file in errors."""
    blocks = _blocks(text, path, *_positions(label_column))
    table = find_scheme(scheme or guess_scheme(block.tags for block in blocks))
    sentences = []
    for block in blocks:
        try:
            spans = spans_from_tags(block.tags, table.name, strict=strict)
            sentences.append(Sentence(tuple(block.words), spans))
        except DataError as error:
            for line, tag in zip(block.lines, block.tags, strict=True):
                if table.split(tag) is None:
                    raise DataError.at(path, line, unknown_tag(tag, table)) from error
            raise DataError.at(path, block.lines[0], f"in the sentence that begins here, {error}") from error
    return sentences


def _positions(label_column: str) -> tuple[int, int]:
    if label_column not in _POSITIONS:
        raise ConfigError(f"label_column must be 'first' or 'last'; found {label_column!r}")
    return _POSITIONS[label_column]


def _blocks(text: str, path: str | Path, word_at: int, tag_at: int) -> list[_Block]:
    blocks: list[_Block] = []
    block = _Block()
    interned: dict[str, str] = {}  # one string for each word and tag of a large file
    columns_expected = 0  # as many as the first line has
    for number, line in lines_of(text):
        if not line.strip():
            if block.words:
                blocks.append(block)
                block = _Block()
            continue
        if line.startswith(_DOCUMENT_START):
            continue
        columns = _columns(line)
        columns_expected = columns_expected or max(len(columns), 2)
        if len(columns) != columns_expected:
            raise DataError.at(
                path,
                number,
                f"found {len(columns)} columns; expected {columns_expected}, separated by a tab or spaces: "
                "a word and its tag on every line",
            )
        if len(block.words) == MAX_WORDS:
            raise DataError.at(path, number, too_long(MAX_WORDS + 1))
        word, tag = columns[word_at], columns[tag_at]
        block.words.append(interned.setdefault(word, word))
        block.tags.append(interned.setdefault(tag, tag))
        block.lines.append(number)
    if block.words:
        blocks.append(block)
    if not blocks:
        raise DataError.at(path, None, "contains no sentence; expected lines of a word and its tag")
    return blocks


def _columns(line: str) -> list[str]:
    line = line.rstrip(" \t")
    if "\t" in line:
        # The first cell may be empty: some corpora of tweets have empty words.
        return [cell.strip(" ") for cell in _TABS.split(line)]
    return _SPACES.split(line.lstrip(" "))


def write_columns(
    path: str | Path,
    sentences: Iterable[Sentence],
    *,
    scheme: str = "bio",
    label_column: LabelColumn = "last",
) -> None:
    """Write a word, a tab and its tag on each line, and a blank line after each sentence."""
    word_at, _ = _positions(label_column)
    pieces: list[str] = []
    for number, sentence in enumerate(sentences, start=1):
        try:
            tags = tags_from_spans(len(sentence), sentence.spans, scheme)
        except DataError as error:
            raise DataError.at(path, None, f"sentence {number} cannot be written: {error}") from error
        for word, tag in zip(sentence.words, tags, strict=True):
            cells = [word, tag] if word_at == 0 else [tag, word]
            line = "\t".join(cells)
            if not _is_safe(line, cells) or (line.startswith(_BYTE_ORDER_MARK) and not pieces):
                raise DataError.at(
                    path,
                    None,
                    f"sentence {number} cannot be written: {word!r} ({tag}) would not be read back",
                )
            pieces.append(f"{line}\n")
        pieces.append("\n")
    write_text(path, pieces)


def render_conll(document: Document, place: str, log: DropLog, *, scheme: str = "bio") -> str:
    """Return a document as columns. A word has one tag, so of overlapping spans the longest is kept.

    IO joins spans of one label that touch; these are reported as well.
    """
    words, marks = document.spans(log, place)
    if not words:
        log.add(Drop(DropReason.NO_TEXT, place))
        return ""
    reasons: dict[Span, DropReason] = {}
    for span in marks:
        if not _is_safe(f"x\tI-{span.label}", ["x", f"I-{span.label}"]):
            reasons[span] = DropReason.LABEL
    spans = outermost(span for span in marks if span not in reasons)
    reasons |= dict.fromkeys(set(marks) - set(spans) - set(reasons), DropReason.OVERLAPS)
    if scheme.lower() == "io":
        joined = [b for a, b in pairwise(spans) if a.end == b.start and a.label == b.label]
        reasons |= dict.fromkeys(joined, DropReason.TOUCHES)
    for span, reason in sorted(reasons.items()):
        log.add(Drop(reason, place, marks[span].described(document.text)))
    lines = []
    for word, tag in zip(words, tags_from_spans(len(words), spans, scheme), strict=True):
        line = f"{word.text}\t{tag}"
        if not _is_safe(line, [word.text, tag]):
            raise DataError(f"{place} cannot be written: {word.text!r} ({tag}) would not be read back")
        lines.append(f"{line}\n")
    return "".join([*lines, "\n"])


def _is_safe(line: str, cells: list[str]) -> bool:
    """Return whether a line, once written, is read as these cells."""
    skipped = not line.strip() or line.startswith(_DOCUMENT_START)
    return not skipped and not set(line) & set("\n\r\0") and _columns(line) == cells
