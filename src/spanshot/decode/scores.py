"""What a model says of one sentence, before anything is decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanshot.types import ScoredSpan, Span

Bounds = npt.NDArray[np.int64]  # [spans, 2]: start, end exclusive
Values = npt.NDArray[np.float32] | npt.NDArray[np.float64]
OBias = float | npt.NDArray[np.float64]  # one for all, or one for each class but O


@dataclass(frozen=True, slots=True)
class SpanScores:
    """A score for each candidate span and class: column 0 is O, then the labels. Higher is nearer."""

    labels: tuple[str, ...]
    bounds: Bounds
    scores: Values  # [spans, 1 + labels]
    evidence: Values | None = None  # [spans, support spans of all labels]: how near each is, if the method can tell


@dataclass(frozen=True, slots=True)
class TokenScores:
    """A score for each word and tag: column 0 is O. Higher is nearer."""

    tags: tuple[str, ...]
    scores: Values  # [words, tags]
    nearest: npt.NDArray[np.int64] | None = None  # [words, tags]: nearest support word, if single words decide


def likely_spans(scores: SpanScores, o_bias: OBias = 0.0) -> list[ScoredSpan]:
    """The spans whose most probable class is a label, with that probability.

    ``o_bias`` is put between O and the labels first: the more, the more spans are found.
    """
    logits = without_bias(scores.scores, o_bias)
    best = logits.argmax(axis=1)
    rows = np.flatnonzero(best)
    if not len(rows):
        return []
    chosen = logits[rows]
    top = chosen.max(axis=1)
    probability = 1.0 / np.exp(chosen - top[:, None]).sum(axis=1)
    return [
        ScoredSpan(Span(int(start), int(end), scores.labels[label - 1]), float(p))
        for (start, end), label, p in zip(scores.bounds[rows], best[rows], probability, strict=True)
    ]


def without_bias(scores: Values, o_bias: OBias) -> npt.NDArray[np.float64]:
    """The scores with ``o_bias`` taken off O's or, where each class has its own, added to theirs."""
    logits = np.array(scores, dtype=np.float64)
    if isinstance(o_bias, np.ndarray):
        logits[:, 1:] += o_bias
    else:
        logits[:, 0] -= o_bias
    return logits
