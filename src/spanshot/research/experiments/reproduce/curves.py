"""Relative loss of F1 as episodes become harder: the curves of the nested and the noisy situation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spanshot.evaluation.counts import Counts
from spanshot.research.experiments.reproduce.results import Cell, Chart, Curve, ResultTable

RESAMPLES = 1000
Floats = npt.NDArray[np.float64]


def relative_losses(points: Sequence[Sequence[Counts]]) -> tuple[list[float], list[float]]:
    """Return the loss of micro F1 at each point in percent of that at the first, and half its 95 % interval.

    A point is a list of the counts of its episodes. The intervals come from resampled episodes, the same at every
    point, so that the loss at the first point is always 0.
    """
    correct = np.array([[counts.tp for counts in point] for point in points], dtype=float)  # [points, episodes]
    wrong = np.array([[counts.fp + counts.fn for counts in point] for point in points], dtype=float)
    size = correct.shape[1]
    draws = np.random.default_rng(0).integers(size, size=(RESAMPLES, size))
    sampled = _losses(correct[:, draws].sum(2), wrong[:, draws].sum(2))  # [points, resamples]
    low, high = np.quantile(sampled, (0.025, 0.975), axis=1)
    exact = _losses(correct.sum(1, keepdims=True), wrong.sum(1, keepdims=True))[:, 0]
    return exact.tolist(), ((high - low) / 2).tolist()


def _losses(correct: Floats, wrong: Floats) -> Floats:
    """Return the loss of F1 in percent of that at the first point, from spans found and errors. [points, ...]"""
    f1 = np.divide(2 * correct, 2 * correct + wrong, out=np.zeros_like(correct), where=correct > 0)
    losses: Floats = 100 * np.divide(f1[0] - f1, f1[0], out=np.zeros_like(f1), where=f1[0] > 0)
    return losses


def curve_table(title: str, ratios: Sequence[float], points: Mapping[str, Sequence[Sequence[Counts]]]) -> ResultTable:
    """Return F1 and its relative loss at each ratio, one row per method."""
    rows: dict[str, tuple[Cell | str, ...]] = {}
    for name, method_points in points.items():
        losses, _ = relative_losses(method_points)
        rows[name] = tuple(
            f"{100 * _f1(point):.2f} ({0.0 - loss:+.1f} %)" for point, loss in zip(method_points, losses, strict=True)
        )
    columns = tuple(f"r = {ratio:g}" for ratio in ratios)
    return ResultTable(title, columns, rows, "Micro F1, and its change relative to r = 0.")


def curve_chart(
    name: str, title: str, x_label: str, ratios: Sequence[float], points: Mapping[str, Sequence[Sequence[Counts]]]
) -> Chart:
    """Return the chart of the relative losses."""
    curves = []
    for method, method_points in points.items():
        losses, halves = relative_losses(method_points)
        curves.append(Curve(method, tuple(losses), tuple(halves)))
    return Chart(name, title, x_label, "ΔF1 in % of F1 at r = 0", tuple(ratios), tuple(curves))


def most_stable(points: Mapping[str, Sequence[Sequence[Counts]]], where: str) -> str:
    """Name the method that loses least at the last ratio; in the paper it is ESD."""
    last = {name: relative_losses(method_points)[0][-1] for name, method_points in points.items() if method_points}
    if len(last) < 2 or "ESD" not in last:
        return ""
    order = sorted(last, key=last.__getitem__)
    listed = ", ".join(f"{name} {last[name]:.1f} %" for name in order)
    if order[0] == "ESD":
        return f"As in the paper, ESD loses least {where}: {listed}."
    return f"The ranking differs from the paper, where ESD loses least {where}. Here: {listed}."


def _f1(counts: Sequence[Counts]) -> float:
    return sum(counts, Counts()).f1
