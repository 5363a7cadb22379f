"""From the scores of a sentence to its spans, behind one call: by spans, or by the tags of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from spanshot.decode.conflicts import Resolver
from spanshot.decode.linear_chain import marginals, viterbi
from spanshot.decode.scores import OBias, SpanScores, TokenScores, likely_spans, without_bias
from spanshot.decode.transitions import Transitions
from spanshot.tags import spans_from_tags
from spanshot.types import ScoredSpan

LOWEST = -1e4  # in place of minus infinity, of which a chain would make no number


ScoresT = TypeVar("ScoresT", contravariant=True)


class Decoder(Protocol[ScoresT]):
    """Turns the scores of a sentence into spans; ``o_bias`` is subtracted from the score of O first."""

    def __call__(self, scores: ScoresT, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """The spans of one sentence."""
        ...


@dataclass(frozen=True)
class SpanDecoder:
    """Spans that are more probable than O; a resolver settles which of the overlapping ones stay."""

    resolver: Resolver

    def __call__(self, scores: SpanScores, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """The spans of one sentence."""
        return self.resolver(likely_spans(scores, o_bias))


@dataclass(frozen=True)
class TagDecoder:
    """The best tag of each word or, with transitions, the best path; a span is as sure as its words on average."""

    scheme: str
    transitions: Transitions | None = None

    def __call__(self, scores: TokenScores, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """The spans of one sentence."""
        logits = np.maximum(without_bias(scores.scores, o_bias), LOWEST)  # [words, tags]
        if self.transitions is None:
            path: Sequence[int] = logits.argmax(axis=1).tolist()
            sure = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        else:
            path = viterbi(logits, self.transitions)
            sure = marginals(logits, self.transitions)
        spans = spans_from_tags([scores.tags[tag] for tag in path], self.scheme)
        own = sure[np.arange(len(path)), path]  # [words]
        return [ScoredSpan(span, min(1.0, float(own[span.start : span.end].mean()))) for span in spans]
