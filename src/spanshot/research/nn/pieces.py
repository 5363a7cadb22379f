"""Words to sub-word pieces, with the map back: which piece starts a word, which one ends it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tokenizers import Tokenizer

MOST_PIECES_PER_WORD = 64
MASKS = ("[MASK]", "<mask>")  # what encoders call the piece that hides another; without one, the unknown piece does
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can hold them; no tokenizer takes them


@dataclass(frozen=True, slots=True)
class Row:
    """What the encoder reads at once: a sentence, or a window of one that is too long for it."""

    sentence: int
    ids: tuple[int, ...]
    words: tuple[int, ...]
    """Positions in the sentence of the words whose vectors are taken from this row."""
    first: tuple[int, ...]
    """For each of these words, where its first piece stands in ``ids``."""
    last: tuple[int, ...]
    second: int
    """Where the second sentence of a pair starts in ``ids``; their number if there is none."""


class Pieces:
    """Cuts words into pieces one by one, so that every word keeps its own.

    A word that yields no piece at all (control characters, for instance) becomes the unknown piece, or the
    padding's where there is none. A sentence with more than ``longest`` pieces is read in windows that overlap by
    a half; each word's vector comes from the window in which it stands farthest from an edge, so nothing is cut off.
    """

    def __init__(self, tokenizer: Tokenizer, longest: int, unknown: str | None, padding_id: int) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer
        self.longest = longest
        self.unknown = unknown
        self._unknown_id: int = (tokenizer.token_to_id(unknown) if unknown else None) or padding_id
        self.padding_id = padding_id
        masks = (tokenizer.token_to_id(name) for name in MASKS)
        self.mask_id: int = next((number for number in masks if number is not None), self._unknown_id)
        bare = tokenizer.encode("a", add_special_tokens=False).ids
        framed = tokenizer.encode("a", add_special_tokens=True).ids
        at = next(i for i in range(len(framed)) if framed[i : i + len(bare)] == bare)
        self._before, self._after = tuple(framed[:at]), tuple(framed[at + len(bare) :])
        pair = tokenizer.encode("a", "a", add_special_tokens=True).ids
        self._between = tuple(pair[at + len(bare) : len(pair) - len(self._after) - len(bare)])

    def _room(self, pair: bool) -> int:
        """Pieces that a row can hold beside those before, between and after sentences."""
        framing = len(self._before) + len(self._after) + (len(self._between) if pair else 0)
        return self.longest - framing

    def rows(self, sentences: Sequence[Sequence[str]], breaks: Sequence[int] = ()) -> list[Row]:
        """The rows of all sentences, in order; a sentence has one row unless it is too long.

        ``breaks`` says for each sentence, where two are read as one, how many words the first has: the pieces that
        part a pair are put after them.
        """
        encodings = self.tokenizer.encode_batch(
            [[_valid(word) for word in words] for words in sentences], is_pretokenized=True, add_special_tokens=False
        )
        room = self._room(pair=bool(breaks))
        most = min(MOST_PIECES_PER_WORD, room)
        rows: list[Row] = []
        for number, (words, encoding) in enumerate(zip(sentences, encodings, strict=True)):
            pieces = _group(encoding.ids, encoding.word_ids, len(words), most)
            if not all(pieces):
                pieces = [own or [self._unknown_id] for own in pieces]
            between = breaks[number] if breaks else None
            rows.extend(self._row(number, pieces, window, between) for window in self._windows(pieces, room))
        return rows

    def _windows(self, pieces: list[list[int]], room: int) -> Iterator[tuple[int, int, int, int]]:
        """``(start, end, keep_from, keep_to)`` in words: read start..end, keep the vectors of the middle."""
        sizes = [len(own) for own in pieces]
        if sum(sizes) <= room:
            yield 0, len(pieces), 0, len(pieces)
            return
        bounds = []
        start = 0
        while True:
            end, used = start, 0
            while end < len(sizes) and used + sizes[end] <= room:
                used += sizes[end]
                end += 1
            bounds.append((start, end))
            if end == len(sizes):
                break
            start = max(start + 1, (start + end) // 2)
        cuts = [0] + [(a_end + b_start) // 2 for (_, a_end), (b_start, _) in pairwise(bounds)]
        cuts.append(len(pieces))
        for (start, end), keep_from, keep_to in zip(bounds, cuts, cuts[1:], strict=False):
            yield start, end, keep_from, keep_to

    def _row(
        self, sentence: int, pieces: list[list[int]], window: tuple[int, int, int, int], between: int | None
    ) -> Row:
        start, end, keep_from, keep_to = window
        ids = list(self._before)
        first, last = [], []
        second = len(ids) if between is not None and between < start else None
        for word in range(start, end):
            if word == between:
                ids += self._between
                second = len(ids)
            if keep_from <= word < keep_to:
                first.append(len(ids))
                last.append(len(ids) + len(pieces[word]) - 1)
            ids += pieces[word]
        ids += self._after
        words = tuple(range(keep_from, keep_to))
        return Row(sentence, tuple(ids), words, tuple(first), tuple(last), len(ids) if second is None else second)


def _valid(word: str) -> str:
    return word if word.isascii() else _LONE_SURROGATES.sub("\ufffd", word)


def _group(ids: list[int], word_ids: list[int | None], words: int, most: int) -> list[list[int]]:
    """The pieces of each word; of an endless word only the beginning and the very last piece are kept."""
    pieces: list[list[int]] = [[] for _ in range(words)]
    for piece, word in zip(ids, word_ids, strict=True):
        if word is not None:
            pieces[word].append(piece)
    return [own if len(own) <= most else [*own[: most - 1], own[-1]] for own in pieces]
