"""Decode scores of labels that are decided independently: a span has a label if the label's score is above O's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanshot.decode.scores import OBias, SpanScores, with_o_bias
from spanshot.decode.spans import Resolver
from spanshot.types import ScoredSpan, Span


@dataclass(frozen=True)
class IndependentDecoder:
    """Takes every span and label with a positive logit; a resolver chooses among those that overlap.

    The logit of a label is its score minus that of O. Unlike ``SpanDecoder``, a label's score does not depend on the
    other labels, and a span may have several labels if the resolver allows it.
    """

    resolver: Resolver

    def __call__(self, scores: SpanScores, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """Return the spans of one sentence with the probabilities of their labels."""
        values = with_o_bias(scores.scores, o_bias)
        logits = values[:, 1:] - values[:, :1]  # [spans, labels]
        rows, columns = np.nonzero(logits > 0)
        probability = 1 / (1 + np.exp(-logits[rows, columns]))
        places = zip(scores.bounds[rows].tolist(), columns.tolist(), probability.tolist(), strict=True)
        return self.resolver(
            ScoredSpan(Span(start, end, scores.labels[label]), score) for (start, end), label, score in places
        )
