"""The linear head: one weight vector and bias per label, fitted to the span vectors of a few examples.

A label's weights are its own weights plus the vector made from its name, times a factor. See ``heads.fit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spanshot.heads.settings import HeadSettings

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Prior:
    """What label names say before any example: a linear scorer per label."""

    weights: Floats  # [labels, size]
    bias: Floats  # [labels]
    named: tuple[bool, ...]
    """False for labels whose names are unknown: their prior is the same learned vector."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The span vectors that the head keeps of one example sentence."""

    vectors: Floats  # [rows, size]; the annotated rows stand first, then unmarked ones, the most useful first
    marked: Bools  # [rows, labels]: which labels a row has; False beyond the annotated rows
    annotated: int
    """Number of leading rows that are marked or explicitly rejected; marked ones have weight 1."""
    stands_for: Floats  # [rows]: unmarked spans that a row stands for; 1 for marked rows
    covered: Bools  # [labels]: whether the sentence was annotated with a label in mind
    background: float
    """Number of unmarked spans of the sentence."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """All that tagging needs: one weight vector and bias per label."""

    weights: Floats  # [labels, size]
    bias: Floats  # [labels]

    def scores(self, vectors: Floats) -> Floats:
        """Return the logit of each span for each label. [spans, labels]"""
        return vectors @ self.weights.T + self.bias


@dataclass(frozen=True)
class LinearHead:
    """A fitted head. It holds the rows it was fitted to, so that it can explain itself and be refitted."""

    settings: HeadSettings
    prior: Prior
    sentences: tuple[Rows, ...]
    counts: tuple[int, ...]
    """Examples of each label."""
    thetas: Array  # [labels, size + 2]: own weights, factor of the prior, bias; before slope and shift

    @cached_property
    def scorer(self) -> Scorer:
        """Weights and biases with factor, slope and shift folded in."""
        counts = np.array(self.counts)
        slope = np.where(counts > 0, self.settings.slope, 1.0)
        shift = self.settings.shift + self.settings.shift_per_log_count * np.log(counts.clip(1))
        weights = slope[:, None] * (self.thetas[:, :-2] + self.thetas[:, -2:-1] * self.prior.weights)
        bias = slope * self.thetas[:, -1] + np.where(counts > 0, shift, 0.0)
        return Scorer(weights.astype(np.float32), bias.astype(np.float32))

    def scores(self, vectors: Floats, matches: Floats | None = None) -> Floats:
        """Return the logit of each span for each label. [spans, labels]

        ``matches`` [spans, labels], from a ``Lexicon`` of the examples, adds a bonus to texts that examples mark.
        """
        scores = self.scorer.scores(vectors)
        return scores if matches is None else scores + np.float32(self.settings.match) * matches

    def slope(self, label: int) -> float:
        """Return the factor from fitted scores of a label to logits."""
        return self.settings.slope if self.counts[label] else 1.0

    @property
    def factors(self) -> tuple[float, ...]:
        """The fitted factor of each label's prior weights: about 1 for a telling name, 0 for one that says nothing."""
        return tuple(self.thetas[:, -2].tolist())


def sigmoid(scores: Array) -> Array:
    """Return the logistic function without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * scores)))
