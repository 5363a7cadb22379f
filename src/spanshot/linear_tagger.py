"""The tagger of the ground floor's model: encode, score, decode, explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spanshot.decode.greedy import best_without_conflicts
from spanshot.engine.encoder import SpanEncoder
from spanshot.engine.spans import LONGEST, Bounds, SpanVectors, candidates
from spanshot.heads.blas import one_thread
from spanshot.heads.evidence import Annotated
from spanshot.heads.lexicon import Lexicon, Marked
from spanshot.heads.linear import Floats, LinearHead
from spanshot.heads.settings import ScoreSettings
from spanshot.types import Evidence, LearnOptions, ScoredSpan, Sentence, Span

LOWEST = 0.01
"""No threshold is lower: spans with a score below are never entities."""
PIECES_PER_WORD = 2
"""Most pieces of a batch, as a multiple of the most words."""


FIRST_LOOK = 512
"""Examples of a label that are looked at first for reasons: those with the largest coefficients."""
MOST_EXAMPLES = 3
"""Examples among the reasons of an entity."""


class HasEncoder(Protocol):
    """A learner, which can be pickled where its encoder cannot."""

    encoder: SpanEncoder


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate of a sentence that is an entity."""

    row: int
    """The number of the candidate."""
    label: int
    score: float
    logit: float
    match: float
    """The share of its text that examples mark with the label."""


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
        thresholds = self.scores.default_thresholds(self.head.counts, self.head.prior.named)
        return dict(zip(self.labels, thresholds.tolist(), strict=True))

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
    def least_logits(self) -> Floats:
        """The logit of each label at its threshold: candidates with a lower one are no entities. [labels]"""
        slope, shift = self.scores.maps(self.head.counts)
        scores = np.clip(list(self.thresholds.values()), LOWEST, 1 - 1e-9)
        least: Floats = ((np.log(scores / (1 - scores)) - shift) / slope).astype(np.float32)
        return least

    @cached_property
    def _calibration(self) -> tuple[Floats, Floats]:
        """Factor and shift from the logits of each label to those of scores. [labels] each"""
        slope, shift = self.scores.maps(self.head.counts)
        return slope.astype(np.float32), shift.astype(np.float32)

    @cached_property
    def _annotated(self) -> Annotated:
        return self.annotated or Annotated.of(self.head)

    @cached_property
    def _name_weights(self) -> Floats:
        """The part of each label's name in its weights. [labels, size]"""
        slopes = np.array([self.head.slope(label) for label in range(len(self.labels))])
        return (slopes[:, None] * self.head.thetas[:, -2:-1] * self.head.prior.weights).astype(np.float32)

    def with_options(self, options: LearnOptions) -> LinearTagger:
        """Return the tagger with other thresholds."""
        return replace(self, options=options)

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Return the spans found in each sentence, with their reasons."""
        words = [sentence.words for sentence in sentences]
        bounds = [self.bounds(len(sentence_words)) for sentence_words in words]
        spans_of: list[list[ScoredSpan]] = [[] for _ in sentences]
        room = PIECES_PER_WORD * self.options.max_batch_words
        for number, spans in self.learner.encoder.encode(words, bounds, room):
            spans_of[number] = self.decode(words[number], spans)
        return spans_of

    def bounds(self, words: int) -> Bounds:
        """Return the candidate spans of a sentence with so many words. [spans, 2]"""
        return candidates(words, self.widths)

    @one_thread
    def decode(self, words: Sequence[str], spans: SpanVectors, *, explain: bool = True) -> list[ScoredSpan]:
        """Return the spans of a sentence, given the vectors of its candidates; with their reasons if ``explain``."""
        scored = []
        for choice in self.choose(words, spans):
            start, end = spans.bounds[choice.row].tolist()
            because = self.explain(spans.vectors[choice.row], choice) if explain else ()
            scored.append(ScoredSpan(Span(start, end, self.labels[choice.label]), choice.score, because))
        return scored

    @one_thread
    def choose(self, words: Sequence[str], spans: SpanVectors) -> list[Choice]:
        """Return the candidates of a sentence that are entities, by position: high scores, without conflicts."""
        logits, matches = self.score(words, spans)
        rows, labels = np.nonzero(logits >= self.least_logits)
        if not len(rows):
            return []
        slope, shift = self._calibration
        high = logits[rows, labels]
        scores = (1 / (1 + np.exp(-(high * slope[labels] + shift[labels]).astype(np.float64)))).tolist()
        bounds = [(start, end) for start, end in spans.bounds[rows].tolist()]
        nested = self.scores.nested_threshold if self.options.nested else None
        kept = best_without_conflicts(bounds, labels.tolist(), scores, nested)
        places = [(int(rows[at]), int(labels[at])) for at in kept]
        return [
            Choice(*place, scores[at], float(high[at]), matches.get(place, 0.0))
            for at, place in zip(kept, places, strict=True)
        ]

    def score(self, words: Sequence[str], spans: SpanVectors) -> tuple[Floats, dict[tuple[int, int], float]]:
        """Return the logits of the candidates [spans, labels], and the share of each text that examples mark."""
        scorer = self.head.scorer
        logits = spans.vectors @ scorer.weights.T + scorer.bias
        if self.widths[-1] > self._longest.min():
            width = spans.bounds[:, 1] - spans.bounds[:, 0]
            logits[width[:, None] > self._longest] = -np.inf
        matches: dict[tuple[int, int], float] = {}
        marked_texts = self.lexicon.find(words)
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

    def explain(self, vector: Floats, choice: Choice) -> tuple[Evidence, ...]:
        """Return the terms of a logit, weightiest first: name, examples, marked text. The last one is all the rest.

        The sum of the terms is the logit. An example's term is negative if the span resembles one that is marked
        otherwise.
        """
        label, annotated = choice.label, self._annotated
        best: list[tuple[float, int]] = []
        order = annotated.order[:, label]
        for begin in range(0, len(order), FIRST_LOOK):
            picks = order[begin : begin + FIRST_LOOK]
            coefficients = annotated.coefficients[picks, label]
            # Vectors have length 1, so no further example can weigh more than its coefficient.
            if abs(coefficients[0]) <= (abs(best[-1][0]) if len(best) == MOST_EXAMPLES else 0):
                break
            weights = coefficients * (annotated.vectors[picks] @ vector)
            top = np.argsort(-np.abs(weights), kind="stable")[:MOST_EXAMPLES]
            best += [(float(weights[at]), int(picks[at])) for at in top]
            best = sorted(best, key=lambda pair: -abs(pair[0]))[:MOST_EXAMPLES]
        terms: list[Evidence] = []
        for weight, at in best:
            if not weight:
                continue
            number = int(annotated.sentence[at])
            sentence = self.sentences[number]
            start, end = sorted({(s.start, s.end) for s in (*sentence.spans, *sentence.rejected)})[annotated.row[at]]
            marks = [span for span in sentence.spans if (span.start, span.end) == (start, end)]
            same = [span for span in marks if span.label == self.labels[label]]
            span = (same or marks or [Span(start, end, self.labels[label])])[0]
            terms.append(Evidence(number, span, weight, "example" if marks else "rejected"))
        if self.head.prior.named[label]:
            terms.append(Evidence(-1, None, float(vector @ self._name_weights[label]), "name"))
        if choice.match:
            terms.append(Evidence(-1, None, self.head.settings.match * choice.match, "text"))
        terms = sorted(terms, key=lambda term: -abs(term.weight))
        return (*terms, Evidence(-1, None, choice.logit - sum(term.weight for term in terms), "rest"))


def marked_spans(sentences: Sequence[Sentence], labels: Sequence[str]) -> list[Marked]:
    """Return the words of sentences with their marked spans, as a `Lexicon` takes them."""
    number = {label: at for at, label in enumerate(labels)}
    return [(s.words, [(span.start, span.end, number[span.label]) for span in s.spans]) for s in sentences]
