"""Inline markup: ``[Steve Jobs](PER) founded [Apple](ORG).`` A backslash escapes the next character."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path

from spanshot.errors import DataError
from spanshot.formats.char_spans import short
from spanshot.formats.documents import Document, Mark
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.files import MAX_WORDS, lines_of, read_text, too_long
from spanshot.formats.json_values import unicode_problem
from spanshot.types import Sentence, Span
from spanshot.words import split_words, words_of

_LINE_END = re.compile("\r\n|[\r\n]")
_REMEDY = r"write \[ and \] for brackets that mark nothing"


def parse_inline(text: str) -> Sentence:
    r"""Parse the markup of one sentence. Spans may nest, and begin or end inside a word.

    >>> parse_inline(r"[New York](city) \[sic\]")
    Sentence(words=('New', 'York', '[', 'sic', ']'), spans=(Span(start=0, end=2, label='city'),))
    >>> parse_inline("[Paris](place (city))").spans
    (Span(start=0, end=1, label='place (city)'),)
    >>> parse_inline("[500](dose)mg").words
    ('500', 'mg')
    """
    if not text.isascii() and (problem := unicode_problem(text)):
        raise DataError(f"the text {problem}")
    plain, marks = _strip(text)
    words = words_of(plain)
    places = {at for start, end, _ in marks for at in (start, end)}
    if not places <= {at for word in words for at in (word.start, word.end)}:
        words = split_words(words, places)
    if len(words) > MAX_WORDS:
        raise DataError(too_long(len(words)))
    word_starts, word_ends = [word.start for word in words], [word.end for word in words]
    spans = []
    for start, end, label in marks:
        first, last = bisect_right(word_ends, start), bisect_left(word_starts, end)
        if first >= last:
            raise DataError(f"the span {_quoted_span(plain, start, end, label)} contains no word; mark at least one")
        spans.append(Span(first, last, label))
    offsets = tuple((word.start, word.end) for word in words)
    return Sentence(tuple(word.text for word in words), tuple(spans), plain, offsets)


def parse_inline_lines(text: str, path: str | Path) -> Iterator[Sentence]:
    """Parse one sentence per line; blank lines are skipped. ``path`` names the file in errors."""
    empty = True
    for number, line in lines_of(text):
        if line.strip():
            empty = False
            try:
                yield parse_inline(line)
            except DataError as error:
                raise DataError.at(path, number, str(error)) from error
    if empty:
        raise DataError.at(path, None, "contains no sentence; expected lines such as [Apple](ORG) grew.")


def read_inline(path: str | Path) -> list[Sentence]:
    """Read the sentences of a file, one per line; blank lines are skipped."""
    return list(parse_inline_lines(read_text(path), path))


def write_inline(text: str, marks: Iterable[tuple[int, int, str]]) -> str:
    r"""Return the text with ``(start, end, label)``, in characters, as markup. Of marks that cross, the first is kept.

    >>> write_inline("New York [sic]", [(0, 8, "city")])
    '[New York](city) \\[sic\\]'
    """
    parts: list[str] = []
    opened: list[tuple[int, str]] = []
    at = 0

    def copy(until: int) -> None:
        nonlocal at
        parts.append(re.sub(r"[\[\]\\]", r"\\\g<0>", text[at:until]))
        at = until

    def close(until: int) -> None:
        while opened and opened[-1][0] <= until:
            end, label = opened.pop()
            copy(end)
            parts.append(f"]({_escaped(label)})")

    for start, end, label in sorted(marks, key=lambda mark: (mark[0], -mark[1], mark[2])):
        close(start)
        if not opened or end <= opened[-1][0]:
            copy(start)
            parts.append("[")
            opened.append((end, label))
    close(len(text))
    copy(len(text))
    return "".join(parts)


def render_inline(document: Document, place: str, log: DropLog) -> str:
    """Return a document as one line. Line ends become spaces; of marks that cross, the first is kept."""
    text = document.text
    if "\0" in text:
        raise DataError(f"{place} cannot be written: '\\x00' would not be read back")
    if ends := len(_LINE_END.findall(text)):
        log.add(Drop(DropReason.LINE_END, place, item="line end"), ends)
    _, spans = document.spans(log, place)
    nested, left_out = _nested(spans.values())
    for mark, reason in left_out:
        log.add(Drop(reason, place, _quoted_span(text, mark.start, mark.end, mark.label)))
    plain = _LINE_END.sub(lambda match: " " * len(match[0]), text)
    return write_inline(plain, [(mark.start, mark.end, mark.label) for mark in nested]) + "\n"


def _nested(marks: Iterable[Mark]) -> tuple[list[Mark], list[tuple[Mark, DropReason]]]:
    """Return the marks that markup can express, and the others with the reason."""
    nested: list[Mark] = []
    left_out: list[tuple[Mark, DropReason]] = []
    ends: list[int] = []
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end, mark.label)):
        while ends and ends[-1] <= mark.start:
            ends.pop()
        if mark.label != mark.label.strip() or set(mark.label) & set("\r\n\0"):
            left_out.append((mark, DropReason.LABEL))
        elif ends and mark.end > ends[-1]:
            left_out.append((mark, DropReason.OVERLAPS))
        else:
            nested.append(mark)
            ends.append(mark.end)
    return nested, left_out


def has_markup(line: str) -> bool:
    """Return whether a line seems to contain markup: ``[``, then ``](``, then ``)`` after one more character."""
    opened = line.find("[")
    middle = line.find("](", opened + 1) if opened >= 0 else -1
    return middle >= 0 and line.rfind(")") >= middle + 3


def _escaped(label: str) -> str:
    """Escape a label: backslashes, and parentheses unless they are balanced."""
    depth = 0
    for character in label:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
    return re.sub(r"\\" if depth == 0 else r"[()\\]", r"\\\g<0>", label)


def _quoted_span(plain: str, start: int, end: int, label: str) -> str:
    return f"[{short(plain[start:end], quote=False)}]({short(label, quote=False)})"


def _strip(text: str) -> tuple[str, list[tuple[int, int, str]]]:
    """Return the text without its markup, and (start, end, label) in its characters."""
    plain: list[str] = []
    marks: list[tuple[int, int, str]] = []
    opened: list[int] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\" and at + 1 < len(text):
            plain.append(text[at + 1])
            at += 2
            continue
        at += 1
        if character == "[":
            opened.append(len(plain))
        elif character != "]":
            plain.append(character)
        elif not opened:
            raise DataError(f"character {at}: ']' without a '[' before it; {_REMEDY}")
        else:
            start = opened.pop()
            label, at = _label(text, at)
            marks.append((start, len(plain), label))
    if opened:
        start = opened[-1]
        raise DataError(f"'[' before {''.join(plain[start : start + 20])!r} is never closed; {_REMEDY}")
    return "".join(plain), marks


def _label(text: str, at: int) -> tuple[str, int]:
    """Return the label in parentheses at ``at``, and the position after it. Brackets inside come in pairs."""
    label: list[str] = []
    if text[at : at + 1] != "(":
        raise DataError(f"character {at}: ']' must be followed by a label in parentheses; {_REMEDY}")
    at += 1
    depth = 0
    while at < len(text) and (depth or text[at] != ")"):
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        else:
            depth += (text[at] == "(") - (text[at] == ")")
        label.append(text[at])
        at += 1
    if at == len(text):
        remedy = r"add ')', or write \( for a bracket without a partner" if "(" in label else "add ')'"
        raise DataError(f"the label {'(' + ''.join(label[:20])!r} is never closed; {remedy}")
    name = "".join(label).strip()
    if not name:
        raise DataError(f"character {at}: the label is empty; write one, such as [Apple](ORG)")
    return name, at + 1
