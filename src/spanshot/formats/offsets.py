"""How tools count: an offset of theirs -> a position in a Python string, which counts code points.

JavaScript counts UTF-16 units, where a character beyond U+FFFF (most emoji) counts two. Browsers and brat take the
end of a Windows line for one character, and editors do not count a byte order mark.
"""

from __future__ import annotations

from dataclasses import dataclass

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Unit:
    """One way to count characters."""

    astral: int = 1
    """What a character beyond U+FFFF counts: 2 in UTF-16."""
    silent: int = 1
    """What is counted for the ``\\r`` of ``\\r\\n``, and for a byte order mark at the beginning."""

    def positions(self, text: str) -> dict[int, int]:
        """For every offset that falls between two characters, how many characters are before it.

        >>> Unit(astral=2).positions("😀!")
        {0: 0, 2: 1, 3: 2}
        """
        found = {0: 0}
        offset = 0
        for position, character in enumerate(text):
            if (character == "\r" and text[position + 1 : position + 2] == "\n") or (
                character == _BYTE_ORDER_MARK and position == 0
            ):
                offset += self.silent
            else:
                offset += self.astral if character > "\uffff" else 1
            found[offset] = position + 1
        return found


CHARACTERS = Unit()


def units_of(text: str) -> list[Unit]:
    """The units that count this text differently, code points first."""
    astral = [1, 2] if any(character > "\uffff" for character in text) else [1]
    silent = [1, 0] if "\r\n" in text or text.startswith(_BYTE_ORDER_MARK) else [1]
    return [Unit(wide, narrow) for narrow in silent for wide in astral]
