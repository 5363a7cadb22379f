"""Decode the scores of words into spans, by the best tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from spanshot.decode.linear_chain import marginals, viterbi
from spanshot.decode.scores import OBias, SpanScores, TokenScores, with_o_bias
from spanshot.decode.transitions import Transitions
from spanshot.tags import spans_from_tags
from spanshot.types import ScoredSpan

LOWEST = -1e4  # instead of minus infinity, which turns sums over a chain into NaN
ScoresT = TypeVar("ScoresT", bound=SpanScores | TokenScores, contravariant=True)


class Decoder(Protocol[ScoresT]):
    """Turns the scores of a sentence into spans. ``o_bias`` is subtracted from the score of O first."""

    def __call__(self, scores: ScoresT, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """Return the spans of one sentence."""
        ...


@dataclass(frozen=True)
class TagDecoder:
    """Decodes the best tag of each word or, with transitions, the best path. A span has the mean score of its words."""

    scheme: str
    transitions: Transitions | None = None

    def __call__(self, scores: TokenScores, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """Return the spans of one sentence."""
        logits = np.maximum(with_o_bias(scores.scores, o_bias), LOWEST)  # [words, tags]
        if self.transitions is None:
            path: Sequence[int] = logits.argmax(axis=1).tolist()
            probabilities = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        else:
            path = viterbi(logits, self.transitions)
            probabilities = marginals(logits, self.transitions)
        spans = spans_from_tags([scores.tags[tag] for tag in path], self.scheme)
        word_probabilities = probabilities[np.arange(len(path)), path]  # [words]
        return [ScoredSpan(span, min(1.0, float(word_probabilities[span.start : span.end].mean()))) for span in spans]
