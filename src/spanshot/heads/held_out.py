"""Leave-one-out fits, computed from the full fit.

Removing a sentence changes a label's objective by a few rows. One Newton step from the full fit, with the Hessian
downdated by these rows (Woodbury), nearly solves the new problem. After a large step, further steps with exact
gradients follow, for many sentences at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spanshot.heads.blas import one_thread
from spanshot.heads.fit import Problem, Table, solve
from spanshot.heads.linear import Array, LinearHead, sigmoid

SMALL_STEP = 3e-3
"""Stop after a step with a smaller Newton decrement: the next decrement would be about its square."""
SMALL_STEP_OF_MANY = 0.08
"""The same for many examples. Scores then differ from those of a new fit by at most 0.01, mostly by 0.0001."""
MANY = 2_000_000
"""Rows times groups above which examples count as many."""
STEPS = 3
"""Steps to try before solving the problem from scratch."""
ACTIVE = 1e-5
"""Rows with a lower curvature hardly change the gradient and are ignored in further steps."""
NEGLIGIBLE = 1e-3
"""Rows with a lower curvature stay in the Hessian; exact gradients make up for it."""
AT_ONCE = 128
"""Problems per batch of further steps."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """The full fit of one label, with all that downdating needs."""

    features: np.ndarray  # [rows, size + 2]
    targets: np.ndarray  # [rows]
    annotated: np.ndarray  # [rows]
    stands_for: Array  # [rows]: for annotated rows 0
    theta: Array
    strength: Array
    centre: Array
    multiple: float
    """Weight of the background as a multiple of the annotated rows."""

    def weights(self, keep: np.ndarray) -> Array:
        """Return the row weights of a fit to the rows in ``keep``. [rows]"""
        annotated = self.annotated & keep
        background = np.where(keep, self.stands_for, 0.0)
        total = background.sum()
        share = self.multiple * annotated.sum() / total if total else 0.0
        return np.asarray(annotated + share * background)


@one_thread
def leave_one_out(head: LinearHead, groups: Sequence[Sequence[int]] | None = None) -> list[LinearHead]:
    """Return, for each sentence (or group of duplicate sentences), the head fitted to all the others, without rows."""
    groups = [[number] for number in range(len(head.sentences))] if groups is None else groups
    table = Table.of(head.sentences, head.prior, head.settings)
    places = [np.flatnonzero(np.isin(table.sentence, group)) for group in groups]
    labels, size = head.prior.weights.shape
    thetas = np.empty((len(groups), labels, size + 2))
    counts = np.empty((len(groups), labels), int)
    for label in range(labels):
        counts[:, label] = [head.counts[label] - int(table.marked[rows, label].sum()) for rows in places]
        thetas[:, label] = _held_out_thetas(head, table, label, places, counts[:, label])
    pairs = zip(counts.tolist(), thetas, strict=True)
    return [LinearHead(head.settings, head.prior, (), tuple(left), solution) for left, solution in pairs]


def _held_out_thetas(
    head: LinearHead, table: Table, label: int, places: Sequence[np.ndarray], counts: np.ndarray
) -> Array:
    """Return the solution for one label without each group. [groups, size + 2]"""
    centre = table.centre[label]
    thetas = np.tile(head.thetas[label], (len(places), 1))
    if not head.counts[label]:
        return thetas
    thetas[counts == 0] = centre
    covered = table.covered[:, label]
    touched = [at for at, rows in enumerate(places) if counts[at] and covered[rows].any()]
    if not touched:
        return thetas
    features = table.features
    fit = _Fit(
        np.concatenate([features, (features @ head.prior.weights[label])[:, None], np.ones_like(features[:, :1])], 1),
        table.marked[:, label],
        table.annotated & covered,
        np.where(~table.annotated & covered, table.stands_for, 0).astype(np.float64),
        head.thetas[label],
        table.strength[label],
        centre,
        head.settings.background,
    )
    thetas[touched] = _Steps(fit, table.weights[:, label], [places[at] for at in touched]).thetas()
    return thetas


class _Steps:
    """Newton steps from the full fit of a label to the fits without each group of rows."""

    def __init__(self, fit: _Fit, weights: Array, places: Sequence[np.ndarray]) -> None:
        self.fit, self.places = fit, places
        is_many = len(weights) * len(places) >= MANY
        self._small = SMALL_STEP_OF_MANY if is_many else SMALL_STEP
        self._enough = self._small if is_many else 0.1 * self._small  # to stop after further steps
        self.chance = sigmoid(_scores(fit, fit.theta))
        bends = weights * self.chance * (1 - self.chance)
        self.active = np.flatnonzero(bends > (ACTIVE if self._small > SMALL_STEP else 0))
        self.inverse = np.linalg.inv(curvature(fit.features[self.active], bends[self.active], fit.strength))
        self.bends = bends
        self._bent = np.flatnonzero(bends > NEGLIGIBLE)
        self._spread = fit.features[self._bent] @ self.inverse.astype(np.float32)  # [bent, size + 2]
        self.shares, self.gradients = self._removed()

    def thetas(self) -> Array:
        """Return the solutions. [groups, size + 2]"""
        moves = self._directions(np.arange(len(self.places)), self.gradients)
        thetas = self.fit.theta - moves
        large = np.flatnonzero((self.gradients * moves).sum(1) > self._small)
        for begin in range(0, len(large), AT_ONCE):
            batch = large[begin : begin + AT_ONCE]
            thetas[batch] = self._further(batch, thetas[batch])
        return thetas

    def _removed(self) -> tuple[Array, Array]:
        """Return the weight of a background row without each group [groups], and the gradient at the full fit."""
        fit = self.fit
        residual = self.chance - fit.targets
        values = np.stack([fit.annotated * residual, fit.stands_for * residual]).astype(np.float32)
        pulls = np.asarray(values @ fit.features, np.float64)  # [2, size + 2]
        rows = np.concatenate(self.places)
        starts = np.cumsum([0, *map(len, self.places[:-1])])
        features = fit.features[rows]
        annotated, background = (np.add.reduceat(value[rows, None] * features, starts, 0) for value in values)
        counted = fit.annotated.sum() - np.add.reduceat(fit.annotated[rows].astype(np.float64), starts)
        remaining = fit.stands_for.sum() - np.add.reduceat(fit.stands_for[rows], starts)
        shares = np.where(remaining > 1e-9, fit.multiple * counted / np.maximum(remaining, 1e-9), 0.0)
        gradients = pulls[0] - annotated + shares[:, None] * (pulls[1] - background)
        return shares, gradients + fit.strength * (fit.theta - fit.centre)

    def _directions(self, groups: np.ndarray, gradients: Array) -> Array:
        """Return the Newton step of each group. [groups, size + 2]

        (H - UᵀCU)⁻¹ g = H⁻¹g + H⁻¹Uᵀ (C⁻¹ - U H⁻¹ Uᵀ)⁻¹ U H⁻¹ g
        """
        moves = gradients @ self.inverse
        for at, group in enumerate(groups):
            rows = self.places[group]
            rows = rows[self.bends[rows] > NEGLIGIBLE]
            if len(rows):
                spread = self._spread[np.searchsorted(self._bent, rows)].astype(np.float64)
                small = np.diag(1 / self.bends[rows]) - spread @ self.fit.features[rows].T
                moves[at] += np.linalg.solve(small, spread @ gradients[at]) @ spread
        return np.asarray(moves)

    def _further(self, groups: np.ndarray, thetas: Array) -> Array:
        """Take further steps with exact gradients; solve from scratch where they do not converge."""
        fit = self.fit
        features = fit.features[self.active]
        before = self.chance[self.active].astype(np.float32)[:, None]
        weights = (fit.annotated[self.active, None] + fit.stands_for[self.active, None] * self.shares[groups]).astype(
            np.float32
        )  # [active, groups]
        for at, group in enumerate(groups):
            inside = np.searchsorted(self.active, self.places[group])
            inside = inside[inside < len(self.active)]
            weights[inside[np.isin(self.active[inside], self.places[group])], at] = 0
        previous = np.full(len(groups), np.inf)
        converged = np.zeros(len(groups), bool)
        for _ in range(STEPS):
            scores = features @ thetas.T.astype(np.float32)
            change = weights * (sigmoid(scores) - before)
            gradients = self.gradients[groups] + change.T @ features + fit.strength * (thetas - fit.theta)
            moves = self._directions(groups, gradients)
            decrement = (gradients * moves).sum(1)
            falls = decrement < previous
            moves[~falls] = 0
            thetas = thetas - moves
            converged = falls & (decrement < self._enough)
            previous = np.where(falls, decrement, -np.inf)
            if converged.all():
                break
        for at in np.flatnonzero(~converged).tolist():
            thetas[at] = self._solve(groups[at])
        return thetas

    def _solve(self, group: int) -> Array:
        """Solve a problem with a line search, starting at the full fit."""
        fit = self.fit
        keep = np.ones(len(fit.targets), bool)
        keep[self.places[group]] = False
        weights = fit.weights(keep)
        in_use = weights > 0
        problem = Problem(
            fit.features[in_use],
            fit.targets[in_use, None],
            weights[in_use, None],
            fit.strength[None],
            fit.centre[None],
            np.zeros_like(fit.centre[None]),
        )
        return np.asarray(solve(problem, fit.theta[None])[0])


def _scores(fit: _Fit, theta: Array) -> Array:
    """Return the scores of all rows; the product is in single precision, the result in double. [rows]"""
    return np.asarray(fit.features @ theta.astype(np.float32), np.float64)


def curvature(features: np.ndarray, bends: Array, strength: Array) -> Array:
    """Return the Hessian of the objective. [size, size]"""
    scaled = features * np.sqrt(bends).astype(features.dtype)[:, None]
    hessian = np.asarray(scaled.T @ scaled, np.float64)
    hessian[np.diag_indices_from(hessian)] += strength
    return hessian
