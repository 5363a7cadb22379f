"""Convert the offsets of annotation tools to positions in a Python string, which count code points.

JavaScript counts UTF-16 units: a character beyond U+FFFF (most emoji) counts two. Browsers and brat count the end of a
Windows line as one character, and editors do not count a byte order mark.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_BYTE_ORDER_MARK = "\ufeff"
# Characters that some tools count as zero or two.
_ODD = re.compile("[\U00010000-\U0010ffff]|\r(?=\n)|\\A\ufeff")
_CHUNK = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit in which tools count characters."""

    astral: int = 1
    """The length of a character beyond U+FFFF: 2 in UTF-16."""
    silent: int = 1
    """The length of the ``\\r`` of ``\\r\\n``, and of a byte order mark at the beginning."""


CHARACTERS = Unit()


def units_of(text: str) -> list[Unit]:
    """Return the units that count this text differently, code points first."""
    astral = [1, 2] if text and max(text) > "\uffff" else [1]
    silent = [1, 0] if "\r\n" in text or text.startswith(_BYTE_ORDER_MARK) else [1]
    return [Unit(wide, narrow) for narrow in silent for wide in astral]


class OffsetTable:
    """Maps the offsets of a tool to positions in a text, for one unit.

    Only characters whose length is not 1 are stored; the positions between them follow.

    >>> table = OffsetTable("😀!", Unit(astral=2))
    >>> [table.position(offset) for offset in range(-1, 5)]
    [None, 0, None, 1, 2, None]
    """

    def __init__(self, text: str, unit: Unit) -> None:
        self._length = len(text)
        self._ends = [0]  # offsets after each odd character
        self._shifts = [0]  # position minus offset from there on
        self._odd: list[int] = []  # positions of the odd characters
        shift = 0
        for match in _ODD.finditer(text):
            length = unit.astral if match[0] > "\uffff" else unit.silent
            if length != 1:
                position = match.start()
                self._odd.append(position)
                shift += 1 - length
                self._ends.append(position + 1 - shift)
                self._shifts.append(shift)

    def position(self, offset: int) -> int | None:
        """Return the position of an offset; None if it lies outside of the text or within a character."""
        number = bisect_right(self._ends, offset) - 1
        if number < 0:
            return None
        position = offset + self._shifts[number]
        limit = self._odd[number] if number < len(self._odd) else self._length
        return position if position <= limit else None


class VisibleText:
    """A text without white space, for comparison: tools replace or drop line breaks.

    >>> visible = VisibleText("New \\r\\n York")
    >>> visible.matches(0, 11, "New York"), visible.matches(0, 11, "NewYork"), visible.matches(0, 11, "York")
    (True, True, False)
    >>> visible.is_blank(3, 7)
    True
    """

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._before: list[int] = []  # visible characters before each chunk
        count = 0
        for match in _CHUNK.finditer(text):
            self._starts.append(match.start())
            self._ends.append(match.end())
            self._before.append(count)
            count += match.end() - match.start()
        self._visible = _visible(text)

    def matches(self, start: int, end: int, surface: str) -> bool:
        """Return whether ``text[start:end]`` is ``surface``, except for white space."""
        first, expected = self._count(start), _visible(surface)
        return max(self._count(end) - first, 0) == len(expected) and self._visible.startswith(expected, first)

    def is_blank(self, start: int, end: int) -> bool:
        """Return whether ``text[start:end]`` contains only white space."""
        return start <= end and self._count(start) == self._count(end)

    def _count(self, position: int) -> int:
        """Count the visible characters before a position."""
        number = bisect_right(self._starts, position) - 1
        if number < 0:
            return 0
        return self._before[number] + min(position, self._ends[number]) - self._starts[number]


def _visible(text: str) -> str:
    return "".join(text.split())
