"""Vary training sentences: cut their words as raw text is cut, drop punctuation, hide words."""

from __future__ import annotations

import random

from spanshot.engine.pieces import HIDDEN
from spanshot.types import Sentence, Span
from spanshot.words import words_of


class Rewording:
    """Cuts the tokens of a corpus into words as raw text is cut, so that training sees the words that users' text has.

    Equal words of all sentences share one object, which keeps large corpora small in memory.

    >>> Rewording()(Sentence(("in", "2018-19"), (Span(1, 2, "time"),)))
    Sentence(words=('in', '2018', '-', '19'), spans=(Span(start=1, end=4, label='time'),))
    """

    def __init__(self) -> None:
        self._words: dict[str, tuple[str, ...]] = {}
        self._same: dict[str, str] = {}

    def __call__(self, sentence: Sentence) -> Sentence | None:
        """Return the sentence in words of raw text; None if it has none. Spans without a word are dropped."""
        words: list[str] = []
        starts = []
        for token in sentence.words:
            starts.append(len(words))
            cut = self._words.get(token)
            if cut is None:
                cut = tuple(self._same.setdefault(word.text, word.text) for word in words_of(token))
                self._words[token] = cut
            words += cut
        if not words:
            return None
        starts.append(len(words))
        moved = ((starts[span.start], starts[span.end], span.label) for span in sentence.spans)
        spans = (Span(start, end, self._same.setdefault(label, label)) for start, end, label in moved if start < end)
        return Sentence(tuple(words), tuple(spans))


def without_signs(sentence: Sentence, *, final_only: bool) -> Sentence:
    """Remove punctuation marks, or only a final one; those at an end of a marked span stay.

    >>> without_signs(Sentence(("Oslo", ",", "Rome", "."), (Span(0, 1, "city"),)), final_only=False).words
    ('Oslo', 'Rome')
    """
    last = len(sentence.words) - 1
    ends = {place for span in sentence.spans for place in (span.start, span.end - 1)}
    keep = [
        place in ends or (final_only and place < last) or len(word) > 1 or word.isalnum()
        for place, word in enumerate(sentence.words)
    ]
    if all(keep) or not any(keep):
        return sentence
    moved = [0]
    for is_kept in keep:
        moved.append(moved[-1] + is_kept)
    words = tuple(word for word, is_kept in zip(sentence.words, keep, strict=True) if is_kept)
    return Sentence(words, tuple(Span(moved[span.start], moved[span.end], span.label) for span in sentence.spans))


def masked(sentence: Sentence, words: float, spans: float, rng: random.Random) -> Sentence:
    """Hide each word with probability ``words``, and all words of each marked span with probability ``spans``."""
    hidden = {place for place in range(len(sentence.words)) if rng.random() < words}
    for span in sentence.spans:
        if rng.random() < spans:
            hidden.update(range(span.start, span.end))
    if not hidden:
        return sentence
    masked_words = tuple(HIDDEN if place in hidden else word for place, word in enumerate(sentence.words))
    return Sentence(masked_words, sentence.spans)
