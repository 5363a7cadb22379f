"""Leave out one example sentence at a time without fitting anew from the start.

Removing a sentence changes a label's objective by a few rows. One Newton step from the full fit, with the Hessian
downdated by these rows (Woodbury), all but solves the new problem; where the step was large, further steps with exact
gradients follow until the result equals a new fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spanshot.heads.linear import LinearHead, Scorer, Table, fold, penalty, row_weights, stack, used_rows, with_prior
from spanshot.heads.solver import Array, Problem, sigmoid, solve

SMALL_STEP = 3e-3
"""A first step whose Newton decrement is less than this is exact enough: the next one would be its square."""
ENOUGH = 1e-5
"""Further steps stop when the remaining gain is less than this."""
NEGLIGIBLE = 1e-4
"""Rows with a lower curvature are left in the Hessian: the gradient decides where the steps end."""
CHEAP_STEPS = 8
"""Steps with the Hessian of the full fit before turning to Newton steps."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """The full fit of one label, and what downdating needs of it."""

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
        """Return row weights if only the rows in ``keep`` remain. [rows]"""
        annotated = self.annotated & keep
        background = np.where(keep, self.stands_for, 0.0)
        total = background.sum()
        share = self.multiple * annotated.sum() / total if total else 0.0
        return np.asarray(annotated + share * background)


def leave_one_out(head: LinearHead, groups: Sequence[Sequence[int]] | None = None) -> list[Scorer]:
    """Return, for each sentence (or group of duplicate sentences), the scorer fitted to all the others."""
    groups = [[number] for number in range(len(head.sentences))] if groups is None else groups
    table = stack(used_rows(head.sentences))
    places = [np.flatnonzero(np.isin(table.sentence, group)) for group in groups]
    labels, size = head.prior.weights.shape
    thetas = np.empty((len(groups), labels, size + 2))
    counts = np.empty((len(groups), labels), int)
    for label in range(labels):
        counts[:, label] = [head.counts[label] - int(table.marked[own, label].sum()) for own in places]
        thetas[:, label] = _held_out_thetas(head, table, label, places, counts[:, label])
    return [fold(head.settings, head.prior, thetas[i], tuple(counts[i].tolist())) for i in range(len(groups))]


def _held_out_thetas(
    head: LinearHead, table: Table, label: int, places: Sequence[np.ndarray], counts: np.ndarray
) -> Array:
    """Return the solution for one label without each group. [groups, size + 2]"""
    strength, centre = penalty(head.settings, head.prior, label)
    thetas = np.tile(head.thetas[label], (len(places), 1))
    if not head.counts[label]:
        return thetas
    thetas[counts == 0] = centre
    covered = table.covered[:, label]
    fit = _Fit(
        with_prior(table.features, head.prior.weights[label]),
        table.marked[:, label],
        table.annotated & covered,
        np.where(~table.annotated & covered, table.stands_for, 0).astype(np.float64),
        head.thetas[label],
        strength,
        centre,
        head.settings.background,
    )
    weights = row_weights(table, label, head.settings)
    chance = sigmoid(_scores(fit, fit.theta))
    bends = weights * chance * (1 - chance)
    inverse = np.linalg.inv(curvature(fit.features, bends, strength))
    spread = fit.features @ inverse.astype(np.float32)  # [rows, size + 2]
    residual = chance - fit.targets
    pull_annotated = _pull(fit, fit.annotated * residual)
    pull_background = _pull(fit, fit.stands_for * residual)
    total_annotated, total_background = fit.annotated.sum(), fit.stands_for.sum()
    own_pull = strength * (fit.theta - centre)
    for number, own in enumerate(places):
        if not counts[number] or not covered[own].any():
            continue
        rows = fit.features[own].astype(np.float64)
        annotated = pull_annotated - (fit.annotated[own] * residual[own]) @ rows
        background = pull_background - (fit.stands_for[own] * residual[own]) @ rows
        left = total_background - fit.stands_for[own].sum()
        share = fit.multiple * (total_annotated - fit.annotated[own].sum()) / left if left else 0.0
        gradient = annotated + share * background + own_pull
        # (H - UᵀCU)⁻¹ g = H⁻¹g + H⁻¹Uᵀ (C⁻¹ - U H⁻¹ Uᵀ)⁻¹ U H⁻¹ g
        bent = own[bends[own] > NEGLIGIBLE]
        spread_own = spread[bent].astype(np.float64)
        small = np.diag(1 / bends[bent]) - spread_own @ fit.features[bent].T

        def direction(pull: Array, spread_own: Array = spread_own, small: Array = small) -> Array:
            correction = np.linalg.solve(small, spread_own @ pull) if len(small) else np.zeros(0)
            return np.asarray(inverse @ pull + correction @ spread_own)

        move = direction(gradient)
        promise = float(gradient @ move)
        thetas[number] = fit.theta - move
        if promise > SMALL_STEP:
            keep = np.ones(len(covered), bool)
            keep[own] = False
            thetas[number] = _refine(fit, keep, direction)
    return thetas


def _refine(fit: _Fit, keep: np.ndarray, direction: Callable[[Array], Array]) -> Array:
    """Descend from the full fit until the remaining gain is negligible; by Newton steps if that takes long."""
    weights = fit.weights(keep)
    signs = np.where(fit.targets, 1.0, -1.0)

    def value(scores: Array, at: Array) -> float:
        return float(weights @ np.logaddexp(0, -signs * scores) + 0.5 * fit.strength @ (at - fit.centre) ** 2)

    theta = fit.theta
    scores = _scores(fit, theta)
    present = value(scores, theta)
    for _ in range(CHEAP_STEPS):
        pull = _pull(fit, weights * (sigmoid(scores) - fit.targets))
        pull += fit.strength * (theta - fit.centre)
        move = direction(pull)
        if float(pull @ move) < ENOUGH:
            return theta
        change = _scores(fit, move)
        size = 1.0
        while (there := value(scores - size * change, theta - size * move)) > present and size > 1e-2:
            size /= 2
        theta, scores, present = theta - size * move, scores - size * change, there
    used = weights > 0
    problem = Problem(
        fit.features[used, :-2],
        fit.features[used, -2:-1],
        fit.targets[used, None],
        weights[used, None],
        fit.strength[None],
        fit.centre[None],
    )
    return np.asarray(solve(problem, theta[None], ENOUGH)[0])


def _scores(fit: _Fit, theta: Array) -> Array:
    """Return the scores of all rows; the product is in single precision, the result in double. [rows]"""
    return np.asarray(fit.features @ theta.astype(np.float32), np.float64)


def _pull(fit: _Fit, values: Array) -> Array:
    """Return the features summed with the given weights. [size + 2]"""
    return np.asarray(values.astype(np.float32) @ fit.features, np.float64)


def curvature(features: np.ndarray, bends: Array, strength: Array) -> Array:
    """Return the Hessian of the objective. [size, size]"""
    scaled = features * np.sqrt(bends).astype(features.dtype)[:, None]
    hessian = np.asarray(scaled.T @ scaled, np.float64)
    hessian[np.diag_indices_from(hessian)] += strength
    return hessian
