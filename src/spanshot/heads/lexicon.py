"""Texts that examples mark: how often a text is marked with a label where it occurs in the examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanshot.heads.rows import Floats

Text = tuple[str, ...]


class Lexicon:
    """For each marked text and label, the share of its occurrences in the examples that have the label.

    >>> lexicon = Lexicon([(["in", "Rome"], [(1, 2, 0)]), (["Rome", "fell"], [])], labels=1)
    >>> lexicon.matches(["rome", "!"], np.array([[0, 1], [0, 2]])).tolist()
    [[0.5], [0.0]]
    """

    def __init__(self, sentences: Sequence[tuple[Sequence[str], Sequence[tuple[int, int, int]]]], labels: int) -> None:
        """Take sentences as words and marked spans ``(start, end, label position)``."""
        self._labels = labels
        folded = [([word.casefold() for word in words], spans) for words, spans in sentences]
        marked: dict[Text, Floats] = {}
        for words, spans in folded:
            for start, end, label in spans:
                row = marked.setdefault(tuple(words[start:end]), np.zeros(labels, np.float32))
                row[label] += 1
        self._widths = sorted({len(text) for text in marked})
        self._firsts = {text[0] for text in marked}
        seen = dict.fromkeys(marked, 0)
        for words, _ in folded:
            for start, word in enumerate(words):
                if word in self._firsts:
                    for width in self._widths:
                        text = tuple(words[start : start + width])
                        if len(text) == width and text in seen:
                            seen[text] += 1
        self._shares = {text: row / max(seen[text], row.max()) for text, row in marked.items()}

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
        found = []
        for start, word in enumerate(folded):
            if word in self._firsts:
                for width in self._widths:
                    end = start + width
                    shares = self._shares.get(tuple(folded[start:end])) if end <= len(folded) else None
                    if shares is not None:
                        found.append((start, end, shares))
        return found
