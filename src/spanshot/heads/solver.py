"""Penalised logistic regressions on shared rows, solved together by Newton steps with conjugate gradients.

Each label has its own weights, a factor of its prior's weights, and a bias: ``theta = (weights, factor, bias)``. All
labels read the same rows, so scores and gradients of all of them are one matrix product each. The systems of a Newton
step are solved by conjugate gradients, preconditioned by an inverse Hessian that the labels share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

Array = NDArray[np.floating]

NEWTON_STEPS = 40
GRADIENT_STEPS = 80
HALVINGS = 12
PRECONDITIONER_ROWS = 2048
SMALL = 1024
"""Problems with at most this many rows are solved in double precision."""
SINGLE_TOLERANCE = 1e-5
"""The least tolerance in single precision; below it, steps would follow rounding errors."""


def sigmoid(scores: Array) -> Array:
    """Return the logistic function without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * scores)))


@dataclass(frozen=True, slots=True)
class Problem:
    """What is minimised: weighted log loss plus ``strength / 2 * (theta - centre) ** 2``, for each label."""

    rows: Array  # [rows, size]
    prior_scores: Array  # [rows, labels]
    targets: npt.NDArray[np.bool_]  # [rows, labels]
    weights: Array  # [rows, labels]
    strength: Array  # [labels, size + 2]
    centre: Array  # [labels, size + 2]

    def scores(self, theta: Array) -> Array:
        """Return the scores of all rows. [rows, labels]"""
        return np.asarray(self.rows @ theta[:, :-2].T + self.prior_scores * theta[:, -2] + theta[:, -1])

    def collect(self, values: Array) -> Array:
        """Return the features summed with the given weights, the transpose of `scores`. [labels, size + 2]"""
        parts = (values.T @ self.rows, (values * self.prior_scores).sum(0)[:, None], values.sum(0)[:, None])
        return np.concatenate(parts, 1)

    def value(self, scores: Array, theta: Array) -> Array:
        """Return each label's objective. [labels]"""
        loss = self.weights * np.logaddexp(0, np.where(self.targets, -scores, scores))
        return np.asarray(loss.sum(0) + 0.5 * (self.strength * (theta - self.centre) ** 2).sum(1))

    def gradient(self, scores: Array, theta: Array) -> Array:
        """Return each label's gradient. [labels, size + 2]"""
        return self.collect(self.weights * (sigmoid(scores) - self.targets)) + self.strength * (theta - self.centre)


def solve(problem: Problem, start: Array | None = None, tolerance: float = 1e-8) -> Array:
    """Return the minimum for every label. [labels, size + 2]

    The objectives are strictly convex, so the result depends on ``start`` only within the tolerance, which bounds the
    Newton decrement: about twice the distance of an objective from its minimum.
    """
    kind: type[np.floating] = np.float64 if len(problem.rows) <= SMALL else np.float32
    problem = Problem(
        problem.rows.astype(kind, copy=False),
        problem.prior_scores.astype(kind, copy=False),
        problem.targets,
        problem.weights.astype(kind, copy=False),
        problem.strength.astype(kind, copy=False),
        problem.centre.astype(kind, copy=False),
    )
    if kind is np.float32:
        tolerance = max(tolerance, SINGLE_TOLERANCE)
    stagnant = 1e-12 if kind is np.float64 else 1e-7
    theta = (problem.centre if start is None else start).astype(kind)
    scores = problem.scores(theta)
    present = problem.value(scores, theta)
    for _ in range(NEWTON_STEPS):
        gradient = problem.gradient(scores, theta)
        chance = sigmoid(scores)
        bends = problem.weights * chance * (1 - chance)
        move = _newton_direction(problem, bends, gradient)
        decrement = (gradient * move).sum(1)
        active = decrement > tolerance
        if not active.any():
            break
        move[~active] = 0
        change = problem.scores(move)
        size: Array = np.ones_like(theta[:, 0])
        for _ in range(HALVINGS):
            there = problem.value(scores - size * change, theta - size[:, None] * move)
            worse = active & (there > present - 1e-4 * size * decrement) & (there > present * (1 - 1e-6))
            if not worse.any():
                break
            size[worse] /= 2
        theta = theta - size[:, None] * move
        scores = scores - size * change
        gain = present - there
        present = there
        if not (active & (gain > stagnant * np.abs(there))).any():
            break  # what is left is rounding errors
    return theta.astype(np.float64)


def _newton_direction(problem: Problem, bends: Array, gradient: Array) -> Array:
    """Solve ``hessian @ move = gradient`` for each label by preconditioned conjugate gradients."""
    precondition = _preconditioner(problem, bends)
    move = np.zeros_like(gradient)
    residual = gradient.copy()
    ready = precondition(residual)
    search = ready.copy()
    power = (residual * ready).sum(1)
    goal = power * np.minimum(0.01, np.sqrt(power)) ** 2
    for _ in range(GRADIENT_STEPS):
        bent = problem.collect(bends * problem.scores(search)) + problem.strength * search
        alive = power > goal
        step = np.where(alive, power / np.maximum((search * bent).sum(1), 1e-30), 0)[:, None]
        move += step * search
        residual -= step * bent
        ready = precondition(residual)
        following = (residual * ready).sum(1)
        if not (following > goal).any():
            break
        search = ready + np.where(alive, following / np.maximum(power, 1e-30), 0)[:, None] * search
        power = following
    return move


def _preconditioner(problem: Problem, bends: Array):  # type: ignore[no-untyped-def]
    """Return a cheap approximate inverse of the Hessians: one matrix for all labels, and a number for the factors."""
    shared = bends.mean(1)  # [rows]
    picks = slice(None)
    scale = 1.0
    if len(shared) > PRECONDITIONER_ROWS:
        order = np.argsort(-shared, kind="stable")
        picks = order[:PRECONDITIONER_ROWS]  # type: ignore[assignment]
        scale = float(shared.sum() / max(float(shared[picks].sum()), 1e-30))
    rows = np.concatenate([problem.rows[picks], np.ones((len(shared[picks]), 1), problem.rows.dtype)], 1)
    rows *= np.sqrt(scale * shared[picks])[:, None]
    hessian = rows.T @ rows
    strength = problem.strength.mean(0)
    hessian[np.diag_indices_from(hessian)] += strength[np.r_[: len(strength) - 2, -1]]
    inverse = np.linalg.inv(hessian)
    factors = (bends * problem.prior_scores**2).sum(0) + problem.strength[:, -2]

    def apply(vectors: Array) -> Array:
        solved = np.concatenate([vectors[:, :-2], vectors[:, -1:]], 1) @ inverse
        return np.concatenate([solved[:, :-1], (vectors[:, -2] / factors)[:, None], solved[:, -1:]], 1)

    return apply
