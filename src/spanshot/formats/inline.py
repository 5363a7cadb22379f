"""Inline markup: ``[Steve Jobs](PER) founded [Apple](ORG).`` A backslash makes the next character a plain one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from spanshot.errors import DataError
from spanshot.formats.files import MAX_WORDS, read_text, too_long
from spanshot.types import Sentence, Span
from spanshot.words import covered, words_of

_REMEDY = r"write \[ and \] for brackets that mark nothing"


def parse_inline(text: str) -> Sentence:
    r"""The sentence that the markup describes. Spans may nest; each must hold whole words.

    >>> parse_inline(r"[New York](city) \[sic\]")
    Sentence(words=('New', 'York', '[', 'sic', ']'), spans=(Span(start=0, end=2, label='city'),))
    """
    plain, marked = _strip(text)
    words = words_of(plain)
    if len(words) > MAX_WORDS:
        raise DataError(too_long(len(words)))
    spans = []
    for start, end, label in marked:
        first, last = covered(words, start, end)
        if first == last:
            raise DataError(f"the span [{plain[start:end]}]({label}) holds no word; mark at least one")
        cut = [word.text for word in (words[first], words[last - 1]) if word.start < start or word.end > end]
        if cut:
            raise DataError(f"the span [{plain[start:end]}]({label}) cuts the word {cut[0]!r}; mark whole words")
        spans.append(Span(first, last, label))
    return Sentence.of_text(plain, spans)


def write_inline(text: str, marks: Iterable[tuple[int, int, str]]) -> str:
    r"""The text with ``(start, end, label)``, in characters, as markup; of marks that cross, the first is shown.

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
            parts.append("](" + re.sub(r"[)\\]", r"\\\g<0>", label) + ")")

    for start, end, label in sorted(marks, key=lambda mark: (mark[0], -mark[1], mark[2])):
        close(start)
        if not opened or end <= opened[-1][0]:
            copy(start)
            parts.append("[")
            opened.append((end, label))
    close(len(text))
    copy(len(text))
    return "".join(parts)


def read_inline(path: str | Path) -> list[Sentence]:
    """The sentences of a file, one a line; blank lines are skipped."""
    sentences = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                sentences.append(parse_inline(line))
            except DataError as error:
                raise DataError.at(path, number, str(error)) from error
    if not sentences:
        raise DataError.at(path, None, "holds no sentence; expected lines such as [Apple](ORG) grew.")
    return sentences


def _strip(text: str) -> tuple[str, list[tuple[int, int, str]]]:
    """The text without its markup, and (start, end, label) in its characters."""
    plain: list[str] = []
    marked: list[tuple[int, int, str]] = []
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
            marked.append((start, len(plain), label))
    if opened:
        raise DataError(f"'[' before {''.join(plain)[opened[-1] :][:20]!r} is never closed; {_REMEDY}")
    return "".join(plain), marked


def _label(text: str, at: int) -> tuple[str, int]:
    """The label in round brackets that must stand at ``at``, and where the text goes on."""
    label: list[str] = []
    if text[at : at + 1] != "(":
        raise DataError(f"character {at}: ']' must be followed by a label in round brackets; {_REMEDY}")
    at += 1
    while at < len(text) and text[at] != ")":
        at += text[at] == "\\" and at + 1 < len(text)
        label.append(text[at])
        at += 1
    if at == len(text):
        raise DataError(f"the label '({''.join(label)[:20]}' is never closed; add ')'")
    name = "".join(label).strip()
    if not name:
        raise DataError(f"character {at}: the label is empty; name what the span is")
    return name, at + 1
