"""Raw text -> words that remember where they stand: ``text[word.start:word.end] == word.text``, always."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

_JOINERS = frozenset("\u00ad\u200c\u200d\u2060")  # soft hyphen, zero-width non-joiner and joiner, word joiner
# One letter per character: l for letters and digits, m for marks, j for joiners, s for all other signs, and a
# space for what no word holds. A word is a run of letters, or one sign; either takes the marks that follow.
_WORD = re.compile("[lm]+(?:j+[lm]+)*|sm*")
# Scripts that are written without spaces: each of their letters is a word, or a span could never be part of a line.
_UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_KINDS = {"L": "l", "N": "l", "M": "m", "P": "s", "S": "s", "Z": " ", "C": " "}
_PRIVATE_OR_UNASSIGNED = frozenset({"Co", "Cn"})

LEAST_FILLED = 0.75
SMALL_BATCH = 256


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its place in the text, in characters."""

    text: str
    start: int
    end: int


def words_of(text: str) -> list[Word]:
    """The words of a text: runs of letters, digits, marks and ``_``; every other sign is a word of its own.

    So is every letter of a script that is written without spaces, such as Chinese, Japanese or Thai. White space,
    control characters and invisible ones part words and belong to none. A joiner inside a word, as Persian has it,
    belongs to that word.

    >>> [word.text for word in words_of("Zoë's at 9:30.")]
    ['Zoë', "'", 's', 'at', '9', ':', '30', '.']
    >>> [word.text for word in words_of("東京 in 2024")]
    ['東', '京', 'in', '2024']
    """
    kinds = "".join(map(_kind, text))
    return [Word(text[found.start() : found.end()], *found.span()) for found in _WORD.finditer(kinds)]


def covered(words: Sequence[Word], start: int, end: int) -> tuple[int, int]:
    """Return the first word that shares a character with ``start..end``, and one past the last, by position.

    >>> covered(words_of("to New York now"), 3, 11)
    (1, 3)
    """
    first = bisect_right(words, start, key=lambda word: word.end)
    last = bisect_left(words, end, key=lambda word: word.start)
    return (first, last) if first < last else (0, 0)


def windows(sizes: Sequence[int], room: int, overlap: int) -> list[tuple[int, int]]:
    """Cut items into windows whose sizes add up to at most ``room``; each overlaps the next by up to ``overlap``.

    The last window overlaps by more if there is room. An item larger than ``room`` is a window of its own.

    >>> windows([1] * 20, room=10, overlap=4)
    [(0, 10), (6, 16), (10, 20)]
    >>> windows([4, 4, 9, 1], room=8, overlap=0)
    [(0, 2), (2, 3), (3, 4)]
    """
    before = [0, *accumulate(sizes)]  # the sizes before each item
    count = len(sizes)
    found: list[tuple[int, int]] = []
    start = 0
    while (end := max(bisect_right(before, before[start] + room) - 1, start + 1)) < count:
        found.append((start, end))
        start = max(bisect_left(before, before[end] - overlap), start + 1)
    if found and overlap:
        start = max(min(start, bisect_left(before, before[count] - room)), found[-1][0] + 1)
    return [*found, (start, count)]


def batches(lengths: Sequence[int], max_words: int) -> Iterator[list[int]]:
    """Group sequences of like length, longest first, and yield their numbers.

    Padded to its longest sequence, a batch has at most ``max_words`` words, or a single sequence. It also ends where
    padding would waste much time.

    >>> list(batches([3, 9, 4, 1], max_words=10))
    [[1], [2, 0], [3]]
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch:
            longest = lengths[batch[0]]
            is_full = (len(batch) + 1) * longest > max_words
            if is_full or (lengths[number] < LEAST_FILLED * longest and len(batch) * longest >= SMALL_BATCH):
                yield batch
                batch = []
        batch.append(number)
    if batch:
        yield batch


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    if character in _JOINERS:
        return "j"
    if character == "_":
        return "l"
    category = unicodedata.category(character)
    if category == "Lo" and unicodedata.name(character, "").startswith(_UNSPACED):
        return "s"
    return "s" if category in _PRIVATE_OR_UNASSIGNED else _KINDS[category[0]]
