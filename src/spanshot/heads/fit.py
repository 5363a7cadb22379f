"""Fit the linear head to examples: choose rows of each sentence, weigh them, and solve for all labels together.

Each label is a penalised logistic regression. Its weights shrink towards the vector made from its name, times a
factor that is fitted too and falls to zero when the name says nothing. Marked spans have weight 1. Unmarked spans share
a total weight that is a multiple of the number of marked ones. A label without examples scores by its name alone.

Marked and rejected spans are always rows. Of the unmarked spans, the most confusable are rows, and an evenly spread
part of the others with a weight to stand for all of them. The choice depends on nothing but the sentence and the
labels' names, so learning sentences in any order, or adding them one by one, gives the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spanshot.heads.blas import one_thread
from spanshot.heads.linear import Array, Bools, Floats, LinearHead, Prior, Rows
from spanshot.heads.settings import HeadSettings

LOWEST = -1e3
"""Below all scores of a prior."""
REJECTED = 3.0
"""Unmarked spans that an explicitly rejected one stands for."""
HARD_ROWS = 32
SPREAD_ROWS = 16
MOST_ROWS = 10_000
"""Rows of a fit. It bounds time and memory, whatever the number of examples."""
KEPT_BIAS = 1e3
"""Penalty on the bias of a label that has rejected spans but no example: the name's bias stays."""

NEWTON_STEPS = 40
GRADIENT_STEPS = 80
HALVINGS = 12
PRECONDITIONER_ROWS = 2048
PATIENCE = 12
"""Conjugate gradient steps after which the preconditioner is computed anew."""
SMALL = 1024
"""Problems with at most this many rows are solved in double precision."""
SINGLE_TOLERANCE = 1e-5
"""The least tolerance in single precision; below it, steps would follow rounding errors."""


@one_thread
def choose_rows(
    vectors: Floats,
    marked: Bools,
    prior: Prior,
    *,
    rejected: Sequence[int] = (),
    covered: Bools | None = None,
    hard: int = HARD_ROWS,
    spread: int = SPREAD_ROWS,
    most: int = MOST_ROWS,
) -> Rows:
    """Choose the rows of a sentence from all of its spans.

    ``vectors`` [spans, size] and ``marked`` [spans, labels] are of all candidates; ``rejected`` are positions of
    spans that a user said are none of the labels. Confusable spans are those near a marked span of the sentence or
    scored high by the prior of a label that was looked for (``covered``). At most ``most`` unmarked rows are kept, the
    most useful ones.
    """
    annotated: Bools = np.asarray(marked.any(1))
    weights = np.where(annotated, 1, REJECTED).astype(np.float32)
    annotated[list(rejected)] = True
    annotated_rows, rest = np.flatnonzero(annotated), np.flatnonzero(~annotated)
    looked_for = slice(None) if covered is None else covered
    likeness = 0.02 * (vectors[rest] @ prior.weights[looked_for].T + prior.bias[looked_for]).max(1, initial=LOWEST)
    if len(annotated_rows):
        likeness = likeness + (vectors[rest] @ vectors[annotated_rows].T).max(1)
    ranked = rest[np.argsort(-likeness, kind="stable")]
    stands_for = np.ones(len(ranked), np.float32)
    if len(ranked) > hard + spread:
        others = np.linspace(hard, len(ranked) - 1, spread).round().astype(np.int64)
        stands_for = np.ones(hard + spread, np.float32)
        stands_for[hard:] = (len(ranked) - hard) / max(spread, 1)
        ranked = ranked[np.concatenate([np.arange(hard), others])]
    order = useful_first(len(ranked))[:most]
    kept = np.concatenate([annotated_rows, ranked[order]])
    return Rows(
        vectors[kept],
        marked[kept],
        len(annotated_rows),
        np.concatenate([weights[annotated_rows], stands_for[order]]),
        np.ones(marked.shape[1], bool) if covered is None else covered,
        float(stands_for.sum()),
    )


@lru_cache(maxsize=256)
def useful_first(count: int) -> npt.NDArray[np.int64]:
    """Order ranked rows such that the first ones are a good choice, whatever their number.

    The second of every three rows is one of an even spread, the others are the highest ranked that are left.

    >>> useful_first(8).tolist()
    [0, 4, 1, 2, 6, 3, 5, 7]
    """
    bits = max(1, (count - 1).bit_length())
    reversed_bits = [int(f"{number:0{bits}b}"[::-1], 2) for number in range(1, 1 << bits)]
    spread = iter([number * count >> bits for number in reversed_bits])  # 1/2, 1/4, 3/4, 1/8, ...
    left = dict.fromkeys(range(count))
    order: list[int] = []
    while left:
        place = next((at for at in spread if at in left), None) if len(order) % 3 == 1 else None
        order.append(next(iter(left)) if place is None else place)
        del left[order[-1]]
    return np.array(order, np.int64)


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of all examples, and the weights and penalties of the fit of each label."""

    features: Floats  # [rows, size]
    marked: Bools  # [rows, labels]
    annotated: Bools  # [rows]: marked with a label
    judged: Bools  # [rows]: annotated, or explicitly rejected
    stands_for: Floats  # [rows]
    covered: Bools  # [rows, labels]: whether the row's sentence was annotated with the label in mind
    sentence: npt.NDArray[np.int64]  # [rows]
    row: npt.NDArray[np.int64]  # [rows]: position in its sentence
    weights: Array  # [rows, labels]
    strength: Array  # [labels, size + 2]: penalties on own weights, factor and bias
    centre: Array  # [labels, size + 2]: what they shrink towards

    @classmethod
    def of(cls, sentences: Sequence[Rows], prior: Prior, settings: HeadSettings) -> Table:
        """Stack the rows of all sentences; with many sentences, fewer unmarked rows of each."""
        labels, size = prior.weights.shape
        room = max(2, (MOST_ROWS - sum(rows.annotated for rows in sentences)) // max(1, len(sentences)))
        sizes = np.array([min(len(rows.vectors), rows.annotated + room) for rows in sentences], int)
        pairs = list(zip(sentences, sizes, strict=True))
        features = np.concatenate([np.zeros((0, size), np.float32), *(rows.vectors[:n] for rows, n in pairs)])
        marked = np.concatenate([np.zeros((0, labels), bool), *(rows.marked[:n] for rows, n in pairs)])
        stands_for = np.concatenate([np.zeros(0, np.float32), *(rows.stands_for[:n] for rows, n in pairs)])
        covered = np.repeat(np.array([rows.covered for rows in sentences], bool).reshape(-1, labels), sizes, 0)
        sentence = np.repeat(np.arange(len(sentences)), sizes)
        row = np.arange(len(features)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        place = row - np.array([rows.annotated for rows in sentences], int)[sentence]  # among the unmarked rows
        annotated, judged = np.asarray(marked.any(1)), place < 0

        # If unmarked rows are left out, the spread rows stand for them.
        is_spread = ~judged & (place % 3 == 1)
        kept = np.bincount(sentence, np.where(judged, 0, stands_for), len(sentences))
        hard = np.bincount(sentence, np.where(judged | is_spread, 0, stands_for), len(sentences))
        background = np.array([rows.background for rows in sentences])
        share = (background - hard) / np.bincount(sentence, is_spread, len(sentences)).clip(1)
        stands_for = np.where(is_spread & (kept < background - 0.5)[sentence], share[sentence], stands_for)

        # Of a label without examples, only rejected spans count.
        unmarked = np.where(covered & ~annotated[:, None], stands_for[:, None], 0.0)
        counted = covered & annotated[:, None]
        multiple = settings.background * counted.sum(0) / np.maximum(unmarked.sum(0), 1e-9)
        has_examples = marked.any(0)
        rejected = covered & (judged & ~annotated)[:, None]
        weights = np.where(has_examples, counted + multiple * unmarked, rejected)

        named = np.array(prior.named)[:, None]
        shrink = np.where(named, settings.shrink_named, settings.shrink_nameless)
        factor = np.where(named, settings.factor_named, settings.factor_nameless)
        bias = np.where(has_examples, settings.bias, KEPT_BIAS)[:, None]
        strength = np.concatenate([np.repeat(shrink, size, 1), factor, bias], 1)
        centre = np.concatenate([np.zeros((labels, size)), np.ones((labels, 1)), prior.bias[:, None]], 1)
        return cls(features, marked, annotated, judged, stands_for, covered, sentence, row, weights, strength, centre)


@one_thread
def fit(
    sentences: Sequence[Rows],
    prior: Prior,
    settings: HeadSettings,
    *,
    start: Array | None = None,
    tolerance: float = 1e-8,
) -> LinearHead:
    """Fit a head to example sentences; without any, labels are scored by name alone.

    A label has own weights, a factor of its name's weights, and a bias. The solver sees the sum of both weights: for a
    given sum, the best factor is known, and the penalty on the sum is weaker along the name's weights.
    """
    table = Table.of(sentences, prior, settings)
    thetas = table.centre.copy()
    fitted = np.flatnonzero(table.weights.any(0))
    if len(fitted):
        names = prior.weights[fitted].astype(np.float64)
        strength = table.strength[fitted]
        shrink, factor = strength[:, :1], strength[:, -2:-1]
        total = shrink * (names**2).sum(1, keepdims=True) + factor
        begin = thetas[fitted] if start is None else start[fitted]
        problem = Problem(
            np.concatenate([table.features, np.ones((len(table.features), 1), np.float32)], 1),
            table.marked[:, fitted],
            table.weights[:, fitted],
            np.delete(strength, -2, 1),
            np.concatenate([names, table.centre[fitted, -1:]], 1),
            np.concatenate([names * shrink / np.sqrt(total), np.zeros_like(total)], 1),
        )
        solved = solve(problem, np.concatenate([begin[:, :-2] + begin[:, -2:-1] * names, begin[:, -1:]], 1), tolerance)
        factors = (shrink * (solved[:, :-1] * names).sum(1, keepdims=True) + factor) / total
        thetas[fitted] = np.concatenate([solved[:, :-1] - factors * names, factors, solved[:, -1:]], 1)
    return LinearHead(settings, prior, tuple(sentences), tuple(table.marked.sum(0).tolist()), thetas)


@dataclass(frozen=True, slots=True)
class Problem:
    """Penalised logistic regressions on shared rows, one per label.

    Each minimises its weighted log loss plus ``(strength * (theta - centre)**2).sum() / 2``. Along one direction the
    penalty is weaker, by ``(relief @ (theta - centre))**2 / 2``.
    """

    rows: Array  # [rows, size]
    targets: Bools  # [rows, labels]
    weights: Array  # [rows, labels]
    strength: Array  # [labels, size]
    centre: Array  # [labels, size]
    relief: Array  # [labels, size]

    def value(self, scores: Array, theta: Array) -> Array:
        """Return each label's objective. [labels]"""
        away = theta - self.centre
        loss = (self.weights * np.logaddexp(0, np.where(self.targets, -scores, scores))).sum(0)
        return np.asarray(loss + 0.5 * ((self.strength * away**2).sum(1) - (self.relief * away).sum(1) ** 2))


def solve(problem: Problem, start: Array | None = None, tolerance: float = 1e-8) -> Array:
    """Return the minimum for every label, found by Newton steps. [labels, size]

    The objectives are strictly convex, so the result depends on ``start`` only within the tolerance, which bounds the
    Newton decrement: about twice the distance of an objective from its minimum.
    """
    kind: type[np.floating] = np.float64 if len(problem.rows) <= SMALL else np.float32
    arrays = (problem.rows, problem.weights, problem.strength, problem.centre, problem.relief)
    rows, weights, strength, centre, relief = (array.astype(kind, copy=False) for array in arrays)
    problem = Problem(rows, problem.targets, weights, strength, centre, relief)
    tolerance, stagnant = (tolerance, 1e-12) if kind is np.float64 else (max(tolerance, SINGLE_TOLERANCE), 1e-7)
    theta = centre.copy() if start is None else start.astype(kind)
    scores = rows @ theta.T
    present = problem.value(scores, theta)
    inverse = None
    for _ in range(NEWTON_STEPS):
        chance = 0.5 * (1 + np.tanh(0.5 * scores))
        bends = weights * chance * (1 - chance)
        away = theta - centre
        gradient = (weights * (chance - problem.targets)).T @ rows
        gradient += strength * away - relief * (relief * away).sum(1, keepdims=True)
        move, inverse = _newton_move(problem, bends, gradient, inverse, tolerance)
        decrement = (gradient * move).sum(1)
        active = decrement > tolerance
        if not active.any():
            break
        move[~active] = 0
        is_last = 4 * decrement**2 < tolerance  # the next decrement would be below that
        change = rows @ move.T
        size: Array = np.ones_like(theta[:, 0])
        for _ in range(HALVINGS):
            there = problem.value(scores - size * change, theta - size[:, None] * move)
            worse = ~is_last & (there > present - 1e-4 * size * decrement) & (there > present * (1 - 1e-6))
            if not worse.any():
                break
            size[worse] /= 2
        theta = theta - size[:, None] * move
        scores = scores - size * change
        gain = present - there
        present = there
        if not (active & ~is_last & (gain > stagnant * np.abs(there))).any():
            break  # what is left is rounding errors
    return theta.astype(np.float64)


def _newton_move(
    problem: Problem, bends: Array, gradient: Array, inverse: Array | None, tolerance: float
) -> tuple[Array, Array | None]:
    """Solve ``hessian @ move = gradient`` for each label by conjugate gradients.

    They are preconditioned by an inverse Hessian that the labels share. It is returned for the next call, unless it
    has become a bad approximation.
    """
    rows, strength, relief = problem.rows, problem.strength, problem.relief
    if inverse is None:
        curvature = bends.mean(1)
        best = np.argsort(-curvature, kind="stable")[:PRECONDITIONER_ROWS]
        scale = curvature.sum() / max(float(curvature[best].sum()), 1e-30)
        scaled = rows[best] * np.sqrt(scale * curvature[best])[:, None]
        inverse = np.linalg.inv(scaled.T @ scaled + np.diag(strength.mean(0)))
    move = np.zeros_like(gradient)
    residual = gradient.copy()
    ready = residual @ inverse
    search = ready.copy()
    power = (residual * ready).sum(1)
    goal = np.maximum(power * np.minimum(0.01, np.sqrt(power)) ** 2, 0.1 * tolerance)
    steps = 0
    while steps < GRADIENT_STEPS:
        steps += 1
        bent = (bends * (rows @ search.T)).T @ rows
        bent += strength * search - relief * (relief * search).sum(1, keepdims=True)
        alive = power > goal
        length = np.where(alive, power / np.maximum((search * bent).sum(1), 1e-30), 0)[:, None]
        move += length * search
        residual -= length * bent
        ready = residual @ inverse
        following = (residual * ready).sum(1)
        if not (following > goal).any():
            break
        search = ready + np.where(alive, following / np.maximum(power, 1e-30), 0)[:, None] * search
        power = following
    return move, inverse if steps < PATIENCE else None
