"""Texts that examples mark: how often a text is marked with a label where it occurs in the examples."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np

from spanshot.heads.linear import Floats

Text = tuple[str, ...]
Marked = tuple[Sequence[str], Sequence[tuple[int, int, int]]]
"""A sentence: its words, and its marked spans ``(start, end, label position)``."""


class Lexicon:
    """For each marked text and label, the share of its occurrences in the examples that have the label.

    >>> lexicon = Lexicon([(["in", "Rome"], [(1, 2, 0)]), (["Rome", "fell"], [])], labels=1)
    >>> lexicon.matches(["rome", "!"], np.array([[0, 1], [0, 2]])).tolist()
    [[0.5], [0.0]]
    """

    def __init__(self, sentences: Sequence[Marked], labels: int) -> None:
        self._labels = labels
        self._marked = _marks(sentences, labels)
        self._widths = sorted({len(text) for text in self._marked})
        self._firsts = {text[0] for text in self._marked}
        self._seen = Counter(text for words, _ in sentences for _, _, text in self._texts(_folded(words), self._marked))
        self._shares = {text: _share(row, self._seen[text]) for text, row in self._marked.items()}
        self._changed: dict[Text, Floats] = {}

    def without(self, sentences: Sequence[Marked]) -> Lexicon:
        """Return the lexicon of all other sentences. It costs no more than reading ``sentences``."""
        gone = _marks(sentences, self._labels)
        seen = Counter(text for words, _ in sentences for _, _, text in self._texts(_folded(words), self._marked))
        rest = copy.copy(self)
        rest._changed = {
            text: _share(self._marked[text] - gone.get(text, np.float32(0)), self._seen[text] - count)
            for text, count in seen.items()
        }
        return rest

    def matches(self, words: Sequence[str], spans: np.ndarray) -> Floats:
        """Return the share of each span's text, per label; 0 for texts that no example marks. [spans, labels]"""
        result = np.zeros((len(spans), self._labels), np.float32)
        for start, end, shares in self.find(words):
            result[(spans[:, 0] == start) & (spans[:, 1] == end)] = shares
        return result

    def find(self, words: Sequence[str]) -> list[tuple[int, int, Floats]]:
        """Return start and end of each marked text in a sentence, and its share per label."""
        if not self._shares:
            return []
        folded = [word.casefold() for word in words]
        if self._firsts.isdisjoint(folded):
            return []
        marked_texts = []
        for start, end, text in self._texts(folded, self._shares):
            shares = self._changed.get(text, self._shares[text])
            if shares.any():
                marked_texts.append((start, end, shares))
        return marked_texts

    def _texts(self, folded: Sequence[str], known: Container[Text]) -> Iterator[tuple[int, int, Text]]:
        """Yield the known texts in a sentence, with start and end."""
        for start, word in enumerate(folded):
            if word in self._firsts:
                for width in self._widths:
                    text = tuple(folded[start : start + width])
                    if len(text) == width and text in known:
                        yield start, start + width, text


def _folded(words: Sequence[str]) -> list[str]:
    return [word.casefold() for word in words]


def _marks(sentences: Iterable[Marked], labels: int) -> dict[Text, Floats]:
    """Count how often each text is marked with each label."""
    marked: dict[Text, Floats] = {}
    for words, spans in sentences:
        folded = _folded(words) if spans else []
        for start, end, label in spans:
            row = marked.setdefault(tuple(folded[start:end]), np.zeros(labels, np.float32))
            row[label] += 1
    return marked


def _share(row: Floats, seen: int) -> Floats:
    return np.asarray(row / max(seen, float(row.max()), 1.0), np.float32)
