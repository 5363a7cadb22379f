"""Choose the span vectors of an example sentence that the head is fitted to.

Marked and rejected spans are always kept. Of the unmarked spans, the most confusable are kept, and an evenly spread
part of the others with a weight to stand for all of them. The choice depends on nothing but the sentence itself and
the labels' names, so learning from sentences in any order, or adding them one by one, gives the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

REJECTED = 3.0
"""Unmarked spans that an explicitly rejected one stands for."""
HARD_ROWS = 32
SPREAD_ROWS = 16


@dataclass(frozen=True, slots=True)
class Rows:
    """What the head keeps of one example sentence."""

    vectors: Floats  # [rows, size]; the annotated rows stand first, then unmarked ones, the most confusable first
    marked: Bools  # [rows, labels]: which labels a row has; False beyond the annotated rows
    annotated: int
    """Number of leading rows that are marked or explicitly rejected; marked ones have weight 1."""
    stands_for: Floats  # [rows]: unmarked spans that a row stands for; 1 for marked rows
    covered: Bools  # [labels]: whether the sentence was annotated with a label in mind

    @property
    def background(self) -> float:
        """Number of unmarked spans of the sentence."""
        return float(self.stands_for[self.annotated :].sum())


def choose_rows(
    vectors: Floats,
    marked: Bools,
    prior_weights: Floats,
    prior_bias: Floats,
    *,
    rejected: Sequence[int] = (),
    covered: Bools | None = None,
    hard: int = HARD_ROWS,
    spread: int = SPREAD_ROWS,
) -> Rows:
    """Choose the rows of a sentence from all of its spans.

    ``vectors`` [spans, size] and ``marked`` [spans, labels] are of all candidates; ``rejected`` are positions of
    spans that a user said are none of the labels. Confusable spans are those near a marked span of the sentence or
    scored high by the prior of a label.
    """
    labels = marked.shape[1]
    annotated: Bools = np.asarray(marked.any(1))
    annotated[list(rejected)] = True
    own = np.flatnonzero(annotated)
    rest = np.flatnonzero(~annotated)
    stands_for = np.ones(len(rest), np.float32)
    if len(rest) > 1:
        likeness = confusion(vectors[rest], vectors[own], prior_weights, prior_bias)
        order = rest[np.argsort(-likeness, kind="stable")]
        picks, stands_for = _thin(stands_for, hard, spread)
        rest = order[picks]
    kept = np.concatenate([own, rest])
    return Rows(
        vectors[kept],
        marked[kept],
        len(own),
        np.concatenate([np.where(marked[own].any(1), 1, REJECTED).astype(np.float32), stands_for]),
        np.ones(labels, bool) if covered is None else covered,
    )


def thinned(rows: Rows, hard: int, spread: int) -> Rows:
    """Return the rows with fewer unmarked ones; marked and rejected rows stay."""
    if len(rows.vectors) - rows.annotated <= hard + spread:
        return rows
    picks, stands_for = _thin(rows.stands_for[rows.annotated :], hard, spread)
    kept = np.concatenate([np.arange(rows.annotated), rows.annotated + picks])
    own = rows.stands_for[: rows.annotated]
    return Rows(rows.vectors[kept], rows.marked[kept], rows.annotated, np.concatenate([own, stands_for]), rows.covered)


def _thin(stands_for: Floats, hard: int, spread: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Keep the first ``hard`` rows and ``spread`` of the others, evenly, which stand for all of these.

    >>> picks, stands_for = _thin(np.ones(10, np.float32), 2, 2)
    >>> picks.tolist(), stands_for.tolist()
    ([0, 1, 2, 9], [1.0, 1.0, 4.0, 4.0])
    """
    if len(stands_for) <= hard + spread:
        return np.arange(len(stands_for)), stands_for
    picks = np.arange(hard)
    weights = stands_for[:hard]
    if spread:
        others = np.unique(np.linspace(hard, len(stands_for) - 1, spread).round().astype(np.int64))
        picks = np.concatenate([picks, others])
        share = float(stands_for[hard:].sum()) / len(others)
        weights = np.concatenate([weights, np.full(len(others), share, np.float32)])
    return picks, weights


def confusion(vectors: Floats, marked_vectors: Floats, prior_weights: Floats, prior_bias: Floats) -> Floats:
    """Return how easily each span is taken for an entity. [spans]"""
    score = 0.02 * (vectors @ prior_weights.T + prior_bias).max(1)
    if len(marked_vectors):
        score = score + (vectors @ marked_vectors.T).max(1)
    return np.asarray(score, np.float32)
