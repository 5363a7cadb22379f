"""The tagger of the ground floor's model: words to span vectors, scores, spans, and the reasons for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spanshot.engine.encoder import SpanEncoder
from spanshot.engine.spans import LONGEST, Bounds, SpanVectors, candidates
from spanshot.heads.evidence import Annotated, Explainer
from spanshot.heads.lexicon import Lexicon, Marked
from spanshot.heads.linear import LinearHead
from spanshot.heads.rows import Floats
from spanshot.heads.settings import ScoreSettings
from spanshot.types import Evidence, LearnOptions, ScoredSpan, Sentence, Span

LOWEST = 0.01
"""No threshold is lower: spans with a score below are never entities."""
PIECES_PER_WORD = 2
"""Most pieces of a batch, as a multiple of the most words."""


class HasEncoder(Protocol):
    """A learner, which can be pickled where its encoder cannot."""

    encoder: SpanEncoder


@dataclass(frozen=True)
class LinearTagger:
    """A head fitted to a support set, and the encoder that made its vectors. A value: calling it changes nothing."""

    learner: HasEncoder
    labels: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    """The examples that the head is fitted to."""
    head: LinearHead
    scores: ScoreSettings
    options: LearnOptions
    widths: tuple[int, ...]
    """Widths of candidate spans, in words."""
    annotated: Annotated | None = None
    """The annotated spans of the examples, if they were saved; otherwise they are taken from the head."""

    @cached_property
    def default_thresholds(self) -> Mapping[str, float]:
        """The threshold of each label if the options give none."""
        return dict(zip(self.labels, self.scores.default_thresholds(self.head.counts).tolist(), strict=True))

    @cached_property
    def lexicon(self) -> Lexicon:
        """The texts that the examples mark."""
        return Lexicon(marked_spans(self.sentences, self.labels), len(self.labels))

    @cached_property
    def thresholds(self) -> Mapping[str, float]:
        """The threshold of each label: the one of the options, or the default."""
        limits = ((label, self.options.threshold_of(label)) for label in self.labels)
        return {label: self.default_thresholds[label] if limit is None else limit for label, limit in limits}

    @cached_property
    def _longest(self) -> npt.NDArray[np.int64]:
        """Most words of an entity of each label: only labels with long examples have long entities. [labels]

        A tagger that was saved without its examples looks for long entities of all labels.
        """
        unknown = not any(sentence.spans for sentence in self.sentences)
        longest = dict.fromkeys(self.labels, self.widths[-1] if unknown else LONGEST)
        for sentence in self.sentences:
            for span in sentence.spans:
                longest[span.label] = max(longest[span.label], len(span))
        return np.array(list(longest.values()))

    @cached_property
    def _map(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Factor and shift from logits to those of scores, and the least logit of each label. [labels] each"""
        slope, shift = self.scores.maps(self.head.counts)
        scores = np.clip(list(self.thresholds.values()), LOWEST, 1 - 1e-9)
        least = (np.log(scores / (1 - scores)) - shift) / slope
        return slope.astype(np.float32), shift.astype(np.float32), least.astype(np.float32)

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self.head, self.annotated or Annotated.of(self.head))

    def with_options(self, options: LearnOptions) -> LinearTagger:
        """Return the tagger with other thresholds."""
        return replace(self, options=options)

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Return the spans found in each sentence, with their reasons."""
        words = [sentence.words for sentence in sentences]
        bounds = [self.bounds(len(sentence)) for sentence in sentences]
        spans_of: list[list[ScoredSpan]] = [[] for _ in sentences]
        room = PIECES_PER_WORD * self.options.max_batch_words
        for number, spans in self.learner.encoder.encode(words, bounds, room):
            spans_of[number] = self.decode(words[number], spans)
        return spans_of

    def bounds(self, words: int) -> Bounds:
        """Return the candidate spans of a sentence with so many words. [spans, 2]"""
        return candidates(words, self.widths)

    def decode(self, words: Sequence[str], spans: SpanVectors) -> list[ScoredSpan]:
        """Return the spans of a sentence, given the vectors of its candidates."""
        return [
            ScoredSpan(
                Span(int(spans.bounds[row, 0]), int(spans.bounds[row, 1]), self.labels[label]),
                score,
                self._because(spans.vectors[row], label, match),
            )
            for row, label, score, match in self.choose(words, spans)
        ]

    def choose(self, words: Sequence[str], spans: SpanVectors) -> list[tuple[int, int, float, float]]:
        """Return candidates without conflicts: row, label, score, and the share of their text that examples mark."""
        logits, matches = self.logits(words, spans)
        slope, shift, least = self._map
        rows, labels = np.nonzero(logits >= least)
        if not len(rows):
            return []
        values = logits[rows, labels] * slope[labels] + shift[labels]
        scores = 1 / (1 + np.exp(-values.astype(np.float64)))
        chosen = self._choose(spans.bounds[rows], labels, scores)
        places = [(int(rows[at]), int(labels[at])) for at in chosen]
        return [(*place, float(scores[at]), matches.get(place, 0.0)) for at, place in zip(chosen, places, strict=True)]

    def logits(self, words: Sequence[str], spans: SpanVectors) -> tuple[Floats, dict[tuple[int, int], float]]:
        """Return the logits of the candidates [spans, labels], and the share of each text that examples mark."""
        logits = self.head.scores(spans.vectors)
        if self.widths[-1] > self._longest.min():
            width = spans.bounds[:, 1] - spans.bounds[:, 0]
            logits[width[:, None] > self._longest] = -np.inf
        matches: dict[tuple[int, int], float] = {}
        marked_texts = list(self.lexicon.find(words))
        if not marked_texts:
            return logits, matches
        base = len(words) + 1
        keys = spans.bounds[:, 0] * base + spans.bounds[:, 1]  # ascending, one per span
        for start, end, shares in marked_texts:
            row = int(np.searchsorted(keys, start * base + end))
            if row < len(keys) and keys[row] == start * base + end:
                logits[row] += np.float32(self.head.settings.match) * shares
                matches.update({(row, label): float(share) for label, share in enumerate(shares) if share})
        return logits, matches

    def _choose(
        self, bounds: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
    ) -> list[int]:
        """Return the positions of the spans that stay, by position: best first, without conflicts.

        Without nesting, no two share a word. With nesting, one may lie inside another, and two labels may have the
        same span; inside or around a better one of its own label, a span needs a high score.
        """
        order = np.lexsort((labels, bounds[:, 1], bounds[:, 0], -scores))
        taken: list[tuple[int, int, int, int]] = []
        for at in order.tolist():
            start, end = bounds[at].tolist()
            label = int(labels[at])
            if self.options.nested:
                is_free = not any(_crosses(start, end, a, b) for a, b, _, _ in taken)
                if is_free and scores[at] < self.scores.nested_threshold:
                    is_free = not any(other == label and start < b and a < end for a, b, other, _ in taken)
            else:
                is_free = not any(start < b and a < end for a, b, _, _ in taken)
            if is_free:
                taken.append((start, end, label, at))
        return [at for _, _, _, at in sorted(taken)]

    def _because(self, vector: Floats, label: int, match: float) -> tuple[Evidence, ...]:
        """Return the terms of a logit; their sum is the logit."""
        reasons = []
        for term in self._explainer.terms(vector, label, match):
            if term.kind != "example":
                reasons.append(Evidence(-1, None, term.value, term.kind))
                continue
            sentence = self.sentences[term.sentence]
            start, end = sorted({(s.start, s.end) for s in (*sentence.spans, *sentence.rejected)})[term.row]
            of_span = [s for s in sentence.spans if (s.start, s.end) == (start, end)]
            with_label = [s for s in of_span if s.label == self.labels[label]]
            span = (with_label or of_span or [Span(start, end, self.labels[label])])[0]
            reasons.append(Evidence(term.sentence, span, term.value, "example" if of_span else "rejected"))
        return tuple(reasons)


def marked_spans(sentences: Sequence[Sentence], labels: Sequence[str]) -> list[Marked]:
    """Return the words of sentences with their marked spans, as a `Lexicon` takes them."""
    number = {label: at for at, label in enumerate(labels)}
    return [(s.words, [(span.start, span.end, number[span.label]) for span in s.spans]) for s in sentences]


def _crosses(start: int, end: int, other_start: int, other_end: int) -> bool:
    """Return whether two spans share words, and neither lies within the other.

    >>> _crosses(0, 2, 1, 3), _crosses(0, 3, 1, 3), _crosses(0, 1, 1, 3)
    (True, False, False)
    """
    if not (start < other_end and other_start < end):
        return False
    return (start < other_start and end < other_end) or (start > other_start and end > other_end)
