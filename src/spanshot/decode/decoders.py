"""From the scores of the words of a sentence to its spans, by the best tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from spanshot.decode.linear_chain import marginals, viterbi
from spanshot.decode.scores import OBias, SpanScores, TokenScores
from spanshot.decode.transitions import Transitions
from spanshot.errors import CheckpointError
from spanshot.tags import spans_from_tags
from spanshot.types import ScoredSpan

LOWEST = -1e4  # instead of minus infinity, which would make the sums of a chain no numbers
ScoresT = TypeVar("ScoresT", bound=SpanScores | TokenScores, contravariant=True)


class Decoder(Protocol[ScoresT]):
    """Turns the scores of a sentence into spans, after ``o_bias`` is taken off those of O."""

    def __call__(self, scores: ScoresT, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """Return the spans of one sentence."""
        ...


@dataclass(frozen=True)
class TagDecoder:
    """Takes the best tag of each word or, with transitions, the best path. A span has the mean score of its words."""

    scheme: str
    transitions: Transitions | None = None

    def __call__(self, scores: TokenScores, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """Return the spans of one sentence."""
        logits = np.maximum(_with_bias(scores, o_bias), LOWEST)  # [words, tags]
        if self.transitions is None:
            path: Sequence[int] = logits.argmax(axis=1).tolist()
            sure = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        else:
            path = viterbi(logits, self.transitions)
            sure = marginals(logits, self.transitions)
        spans = spans_from_tags([scores.tags[tag] for tag in path], self.scheme)
        own = sure[np.arange(len(path)), path]  # [words]
        return [ScoredSpan(span, min(1.0, float(own[span.start : span.end].mean()))) for span in spans]


def _with_bias(scores: TokenScores, o_bias: OBias) -> npt.NDArray[np.float64]:
    """Return the scores after ``o_bias`` is taken off those of O or, if each tag has its own, added to theirs."""
    logits = np.array(scores.scores, dtype=np.float64)
    if isinstance(o_bias, np.ndarray):
        logits[:, 1:] += o_bias
    else:
        logits[:, 0] -= o_bias
    if np.isnan(logits).any():
        raise CheckpointError("the model's scores are not numbers: its weights are damaged")
    return logits
