"""Raw text to words with their offsets, and long texts to windows and batches."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

_JOINERS = frozenset("\u00ad\u200c\u200d\u2060")  # soft hyphen, zero-width non-joiner and joiner, word joiner
# One letter per character: l for letters and digits, m for marks, j for joiners, s for all other signs, and a space for
# characters between words. A word is a run of letters, or one sign, with the marks that follow.
_WORD = re.compile("[lm]+(?:j+[lm]+)*|sm*")
# Scripts that are written without spaces. Each of their letters is a word; otherwise a line would be a single word.
_UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_KINDS = {"L": "l", "N": "l", "M": "m", "P": "s", "S": "s", "Z": " ", "C": " "}
_PRIVATE_OR_UNASSIGNED = frozenset({"Co", "Cn"})

SORTS = ("letter", "digit", "mark", "joiner", "sign")
BOUNDARIES = frozenset(
    {"lower|upper", *(f"{first}|{second}" for first in SORTS for second in SORTS if first != second)}
)
"""The kinds of boundaries inside words."""

LINE_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # those of str.splitlines
LEAST_FILLED = 0.75  # of a batch; the rest may be padding
SMALL_BATCH = 256  # words of a batch that may hold more padding


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its place in a text, in characters: ``text[word.start:word.end] == word.text``."""

    text: str
    start: int
    end: int


def words_of(text: str, cuts: Collection[str] = ()) -> list[Word]:
    """Split a text into words: runs of letters, digits, marks and ``_``; every other sign is a word of its own.

    So is every letter of a script that is written without spaces, such as Chinese, Japanese or Thai. White space,
    control characters and invisible characters separate words. A joiner inside a word, as in Persian, is part of it.
    ``cuts`` are boundaries inside words that separate words too; see `boundary`.

    >>> [word.text for word in words_of("Zoë's at 9:30.")]
    ['Zoë', "'", 's', 'at', '9', ':', '30', '.']
    >>> [word.text for word in words_of("東京 in 2024")]
    ['東', '京', 'in', '2024']
    >>> [word.text for word in words_of("500mg of X2", cuts={"digit|letter"})]
    ['500', 'mg', 'of', 'X2']
    """
    kinds = "".join(map(_kind, text))
    words = [Word(text[found.start() : found.end()], *found.span()) for found in _WORD.finditer(kinds)]
    if not cuts:
        return words
    return split_words(words, [at for word in words for at in places_of(word.text, cuts, word.start)])


def boundary(before: str, after: str) -> str | None:
    """Return the kind of the boundary between two characters of a word; None if they are of one kind.

    >>> boundary("0", "m"), boundary("c", "D"), boundary("n", "h"), boundary("O", "s")
    ('digit|letter', 'lower|upper', None, None)
    """
    first, second = _sort(before), _sort(after)
    if first != second:
        return f"{first}|{second}"
    return "lower|upper" if before.islower() and after.isupper() else None


def is_inside_word(text: str, at: int) -> bool:
    """Return whether a position lies between two characters of a word.

    >>> is_inside_word("500mg.", 3), is_inside_word("500mg.", 5)
    (True, False)
    """
    return 0 < at < len(text) and _kind(text[at - 1]) in "lmj" and _kind(text[at]) in "lmj"


def places_of(text: str, cuts: Collection[str], start: int = 0) -> list[int]:
    """Return the positions in a word at boundaries of these kinds, counted from ``start``."""
    return [start + at for at in range(1, len(text)) if boundary(text[at - 1], text[at]) in cuts]


def split_words(words: Sequence[Word], places: Iterable[int]) -> list[Word]:
    """Cut words at positions of the text; those between words change nothing."""
    ordered = sorted(set(places))
    parts: list[Word] = []
    for word in words:
        inside = ordered[bisect_right(ordered, word.start) : bisect_left(ordered, word.end)]
        for start, end in pairwise([word.start, *inside, word.end]):
            parts.append(Word(word.text[start - word.start : end - word.start], start, end))
    return parts


def covered(words: Sequence[Word], start: int, end: int) -> tuple[int, int]:
    """Return the first word that shares a character with ``start..end``, and one past the last, by position.

    >>> covered(words_of("to New York now"), 3, 11)
    (1, 3)
    """
    first = bisect_right(words, start, key=lambda word: word.end)
    last = bisect_left(words, end, key=lambda word: word.start)
    return (first, last) if first < last else (0, 0)


def line_starts(text: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return the positions of the words that start a line, except the first word.

    >>> line_starts("to Oslo\\non Friday", [(0, 2), (3, 7), (8, 10), (11, 17)])
    [2]
    """
    if not LINE_BREAK.search(text):
        return []
    gaps = enumerate(pairwise(offsets), start=1)
    return [at for at, ((_, end), (start, _)) in gaps if LINE_BREAK.search(text, end, start)]


def text_windows(text: str, words: Sequence[Word], room: int, overlap: int, *, by_line: bool) -> list[tuple[int, int]]:
    """Cut a text into lines, and lines of more than ``room`` words into windows that overlap."""
    starts: list[int] = []
    if by_line and LINE_BREAK.search(text):
        starts = line_starts(text, [(word.start, word.end) for word in words])
    found: list[tuple[int, int]] = []
    for first, last in pairwise([0, *starts, len(words)]):
        if last - first > room:
            found += ((first + start, first + end) for start, end in windows([1] * (last - first), room, overlap))
        elif first < last:
            found.append((first, last))
    return found


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
def _sort(character: str) -> str:
    if character in _JOINERS:
        return "joiner"
    category = unicodedata.category(character)[0]
    return {"L": "letter", "N": "digit", "M": "mark"}.get(category, "sign")


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
