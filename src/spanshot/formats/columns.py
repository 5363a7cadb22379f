"""CoNLL-style columns: one word a line with its tag, a blank line between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from spanshot.errors import ConfigError, DataError
from spanshot.files import write_text
from spanshot.formats.files import MAX_WORDS, read_text, too_long
from spanshot.tags import find_scheme, guess_scheme, spans_from_tags, tags_from_spans, unknown_tag
from spanshot.types import Sentence

LabelColumn = Literal["first", "last"]

_SPACES = re.compile(" +")
_TABS = re.compile("\t+")
_DOCUMENT_START = "-DOCSTART-"
_BYTE_ORDER_MARK = "\ufeff"
# Positions of the word and of the tag; columns between (part of speech, chunk) are not read.
_POSITIONS = {"last": (0, -1), "first": (1, 0)}


@dataclass(slots=True)
class _Block:
    """The lines of one sentence, as they are collected."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def read_columns(
    path: str | Path, *, scheme: str | None = None, label_column: LabelColumn = "last", strict: bool = False
) -> list[Sentence]:
    """Sentences of a column file; without ``scheme``, the one that its tags seem to be written in.

    Columns are parted by tabs, or by spaces in lines without a tab. ``-DOCSTART-`` lines are skipped;
    a line that begins with ``#`` is not, since that is a word too.
    """
    path = Path(path)
    blocks = _read_blocks(path, *_positions(label_column))
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


def _read_blocks(path: Path, word_at: int, tag_at: int) -> list[_Block]:
    blocks: list[_Block] = []
    block = _Block()
    columns_expected = 0  # as many as the first line has
    # Only "\n" ends a line: str.splitlines would also break at U+2028 and its like, which do occur in words.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
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
                f"found {len(columns)} columns; expected {columns_expected}, parted by a tab or spaces: "
                "a word and its tag on every line",
            )
        if len(block.words) == MAX_WORDS:
            raise DataError.at(path, number, too_long(MAX_WORDS + 1))
        block.words.append(columns[word_at])
        block.tags.append(columns[tag_at])
        block.lines.append(number)
    if block.words:
        blocks.append(block)
    if not blocks:
        raise DataError.at(path, None, "holds no sentence; expected lines of a word and its tag")
    return blocks


def _columns(line: str) -> list[str]:
    line = line.rstrip(" \t")
    if "\t" in line:
        # The first cell may be empty: tweets have words that nothing is left of (a lone emoji selector).
        return [cell.strip(" ") for cell in _TABS.split(line)]
    return _SPACES.split(line.lstrip(" "))


def write_columns(
    path: str | Path,
    sentences: Iterable[Sentence],
    *,
    scheme: str = "bio",
    label_column: LabelColumn = "last",
) -> None:
    """Write word and tag with a tab between, and a blank line after every sentence."""
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


def _is_safe(line: str, cells: list[str]) -> bool:
    """Whether a line, once written, is read as these cells."""
    skipped = not line.strip() or line.startswith(_DOCUMENT_START)
    return not skipped and not set(line) & set("\n\r") and _columns(line) == cells
