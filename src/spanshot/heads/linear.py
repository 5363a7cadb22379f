"""The linear head: one penalised logistic regression per label, fitted to the span vectors of a few examples.

The weights of a label shrink towards the vector made from its name, times a factor that is fitted too and falls to
zero when the name says nothing. Labelled spans have weight 1; unmarked spans share a total weight that is a multiple
of the number of labelled ones. A label without examples scores by its name alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spanshot.heads.rows import Floats, Rows, thinned
from spanshot.heads.settings import HeadSettings
from spanshot.heads.solver import Array, Problem, sigmoid, solve

KEPT_BIAS = 1e3
"""Penalty on the bias of a label that has rejected spans but no example: the name's bias stays."""
MOST_ROWS = 10_000
"""Bounds time and memory of a fit, whatever the number of examples."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What label names say before any example: a linear scorer per label."""

    weights: Floats  # [labels, size]
    bias: Floats  # [labels]
    named: tuple[bool, ...]
    """False for labels whose names are unknown: their prior is the same learned vector."""


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a span's score for a label."""

    kind: str
    """``name``, ``example`` (an annotated span), ``background`` (unmarked spans), ``text``, ``bias`` or ``rest``."""
    value: float
    sentence: int = -1
    """For an example: its sentence and its row there."""
    row: int = -1


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of several sentences, stacked."""

    features: Floats  # [rows, size]
    marked: np.ndarray  # [rows, labels]
    annotated: np.ndarray  # [rows]: marked with a label
    shown: np.ndarray  # [rows]: annotated, or explicitly rejected
    stands_for: Floats  # [rows]
    covered: np.ndarray  # [rows, labels]
    sentence: np.ndarray  # [rows]
    row: np.ndarray  # [rows]: position in its sentence


@dataclass(frozen=True, slots=True)
class Scorer:
    """All that tagging needs: one weight vector and bias per label."""

    weights: Floats  # [labels, size]
    bias: Floats  # [labels]

    def scores(self, vectors: Floats) -> Floats:
        """Return the logit of each span for each label. [spans, labels]"""
        return vectors @ self.weights.T + self.bias


@dataclass(frozen=True, slots=True)
class LinearHead:
    """A fitted head. It holds the rows it was fitted to, so that it can explain itself and be refitted."""

    settings: HeadSettings
    prior: Prior
    sentences: tuple[Rows, ...]
    scorer: Scorer
    counts: tuple[int, ...]
    """Examples of each label."""
    thetas: Array  # [labels, size + 2]: own weights, factor, bias, before slope and shift

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

    def evidence(self, vector: Floats, label: int, match: float = 0.0) -> list[Term]:
        """Return terms whose sum is the logit of a span for a label.

        At the minimum of the objective, a label's own weights are a weighted sum of the rows it was fitted to, so
        each annotated span has a term of its own; those of unmarked spans are added up.
        """
        theta = self.thetas[label]
        slope = self.slope(label)
        at = vector.astype(np.float64)
        by_name = slope * theta[-2] * float(at @ self.prior.weights[label].astype(np.float64))
        terms = [Term("name", by_name)]
        total = float(self.scores(vector[None])[0, label])
        bias = float(self.scorer.bias[label])
        table = stack(used_rows(self.sentences))
        examples = 0.0
        weights = row_weights(table, label, self.settings)
        if weights.any():
            feature = table.features.astype(np.float64)
            own = feature @ (theta[:-2] + theta[-2] * self.prior.weights[label]) + theta[-1]
            shrink = penalty(self.settings, self.prior, label)[0][0]
            coefficient = weights * (table.marked[:, label] - sigmoid(own)) / shrink
            for place in np.flatnonzero(table.shown & (weights > 0)):
                value = slope * coefficient[place] * float(feature[place] @ at)
                examples += value
                terms.append(Term("example", value, int(table.sentence[place]), int(table.row[place])))
        # What is left is the unmarked spans' part, and the rounding of the fit.
        terms.append(Term("background", total - bias - by_name - examples))
        terms.append(Term("bias", bias))
        if match:
            terms.append(Term("text", self.settings.match * match))
        return terms

    def adding(self, sentences: Sequence[Rows]) -> LinearHead:
        """Return a head that is also fitted to these sentences; equal to fitting to all of them at once."""
        return fit([*self.sentences, *sentences], self.prior, self.settings, start=self.thetas)

    def removing(self, positions: Sequence[int]) -> LinearHead:
        """Return a head that is not fitted to the sentences at these positions."""
        gone = set(positions)
        kept = [rows for number, rows in enumerate(self.sentences) if number not in gone]
        return fit(kept, self.prior, self.settings, start=self.thetas)


def fit(
    sentences: Sequence[Rows],
    prior: Prior,
    settings: HeadSettings,
    *,
    start: Array | None = None,
    tolerance: float = 1e-8,
) -> LinearHead:
    """Fit a head to example sentences; without any, labels are scored by name alone."""
    table = stack(used_rows(sentences))
    labels = len(prior.weights)
    counts = tuple(int(n) for n in table.marked.sum(0)) if len(table.features) else (0,) * labels
    penalties = [penalty(settings, prior, label) for label in range(labels)]
    thetas = np.array([centre for _, centre in penalties])
    weights = [row_weights(table, label, settings) for label in range(labels)]
    fitted = np.array([label for label in range(labels) if weights[label].any()], int)
    for label in fitted:
        if not counts[label]:
            penalties[label][0][-1] = KEPT_BIAS
    if len(fitted):
        problem = Problem(
            table.features,
            table.features @ prior.weights[fitted].T,
            table.marked[:, fitted],
            np.stack([weights[label] for label in fitted], 1),
            np.array([penalties[label][0] for label in fitted]),
            thetas[fitted],
        )
        thetas[fitted] = solve(problem, None if start is None else start[fitted], tolerance)
    return LinearHead(settings, prior, tuple(sentences), fold(settings, prior, thetas, counts), counts, thetas)


def used_rows(sentences: Sequence[Rows], most: int = MOST_ROWS) -> list[Rows]:
    """Return the rows that the fit uses: with many sentences, fewer unmarked rows of each."""
    room = max(2, (most - sum(rows.annotated for rows in sentences)) // max(1, len(sentences)))
    return [thinned(rows, hard=2 * room // 3, spread=room - 2 * room // 3) for rows in sentences]


def with_prior(features: Floats, prior_weights: Floats) -> Floats:
    """Append the prior's score and a one to each row. [rows, size + 2]"""
    ones = np.ones((len(features), 1), np.float32)
    return np.concatenate([features, (features @ prior_weights)[:, None], ones], 1)


def row_weights(table: Table, label: int, settings: HeadSettings) -> Array:
    """Return the weight of each row in the fit of a label; 0 where it was not annotated with the label in mind.

    A label without examples learns from explicitly rejected spans only, if there are any.
    """
    if not len(table.features):
        return np.zeros(0)
    covered = table.covered[:, label]
    annotated = table.annotated & covered
    if not table.marked[covered, label].any():
        return np.asarray(table.shown & covered & ~table.annotated, np.float64)
    background = np.where(~table.annotated & covered, table.stands_for, 0).astype(np.float64)
    total = background.sum()
    share = settings.background * annotated.sum() / total if total else 0.0
    return np.asarray(annotated + share * background)


def stack(sentences: Sequence[Rows]) -> Table:
    """Stack the rows of several sentences."""
    if not sentences:
        empty = np.zeros(0)
        return Table(
            np.zeros((0, 0), np.float32),
            np.zeros((0, 0), bool),
            empty.astype(bool),
            empty.astype(bool),
            empty.astype(np.float32),
            np.zeros((0, 0), bool),
            empty.astype(int),
            empty.astype(int),
        )
    sizes = [len(rows.vectors) for rows in sentences]
    marked = np.concatenate([rows.marked for rows in sentences])
    return Table(
        np.concatenate([rows.vectors for rows in sentences]),
        marked,
        np.asarray(marked.any(1)),
        np.concatenate([np.arange(len(rows.vectors)) < rows.annotated for rows in sentences]),
        np.concatenate([rows.stands_for for rows in sentences]),
        np.repeat(np.array([rows.covered for rows in sentences]), sizes, 0),
        np.repeat(np.arange(len(sentences)), sizes),
        np.concatenate([np.arange(size) for size in sizes]),
    )


def fold(settings: HeadSettings, prior: Prior, thetas: Array, counts: Sequence[int]) -> Scorer:
    """Fold factor, slope and shift into one weight vector and bias per label."""
    weights = thetas[:, :-2] + thetas[:, -2:-1] * prior.weights
    bias = thetas[:, -1].copy()
    for label, count in enumerate(counts):
        if count:
            weights[label] *= settings.slope
            bias[label] = settings.slope * bias[label] + settings.shift + settings.shift_per_log_count * np.log(count)
    return Scorer(weights.astype(np.float32), bias.astype(np.float32))


def penalty(settings: HeadSettings, prior: Prior, label: int) -> tuple[Array, Array]:
    """Return strength and centre of a label's penalty: own weights, factor of the prior, bias. [size + 2] each"""
    size = prior.weights.shape[1]
    named = prior.named[label]
    shrink = settings.shrink_named if named else settings.shrink_nameless
    factor = settings.factor_named if named else settings.factor_nameless
    strength = np.concatenate([np.full(size, shrink), [factor, settings.bias]])
    return strength, np.concatenate([np.zeros(size), [1.0, float(prior.bias[label])]])
