"""Relative loss of F1 as episodes become harder: the curves of the nested and the noisy situation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spanshot.evaluation.counts import Counts
from spanshot.research.experiments.reproduce.results import Cell, Chart, Curve, Measured, ResultTable

RESAMPLES = 500


def relative_losses(points: Sequence[Sequence[Counts]]) -> tuple[list[float], list[float]]:
    """Return the loss of micro F1 at each point in percent of that at the first, and half its 95 % interval.

    A point is a list of the counts of its episodes. The intervals come from resampled episodes, the same at every
    point, so that the loss at the first point is always 0.
    """
    losses = [_loss(_f1(points[0]), _f1(point)) for point in points]
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        rows = rng.integers(len(points[0]), size=len(points[0]))
        scores = [_f1([point[row] for row in rows]) for point in points]
        drawn.append([_loss(scores[0], score) for score in scores])
    low, high = np.quantile(np.array(drawn), (0.025, 0.975), axis=0)
    return losses, [float(half) for half in (high - low) / 2]


def curve_table(title: str, ratios: Sequence[float], points: Mapping[str, Sequence[Sequence[Counts]]]) -> ResultTable:
    """Return F1 and its relative loss at each ratio, one row per method."""
    rows: dict[str, tuple[Cell | str, ...]] = {}
    for name, own in points.items():
        losses, _ = relative_losses(own)
        rows[name] = tuple(f"{100 * _f1(point):.2f} ({-loss:+.1f} %)" for point, loss in zip(own, losses, strict=True))
    columns = tuple(f"r = {ratio:g}" for ratio in ratios)
    return ResultTable(title, columns, rows, "Micro F1, and its change relative to r = 0.")


def curve_chart(
    name: str, title: str, x_label: str, ratios: Sequence[float], points: Mapping[str, Sequence[Sequence[Counts]]]
) -> Chart:
    """Return the chart of the relative losses."""
    curves = []
    for method, own in points.items():
        losses, halves = relative_losses(own)
        curves.append(Curve(method, tuple(losses), tuple(halves)))
    return Chart(name, title, x_label, "ΔF1 in % of F1 at r = 0", tuple(ratios), tuple(curves))


def most_stable(points: Mapping[str, Sequence[Sequence[Counts]]], where: str) -> str:
    """Say which method loses least at the last ratio; the paper's figures have ESD lose least."""
    last = {name: relative_losses(own)[0][-1] for name, own in points.items() if own}
    if len(last) < 2 or "ESD" not in last:
        return ""
    order = sorted(last, key=last.__getitem__)
    listed = ", ".join(f"{name} {last[name]:.1f} %" for name in order)
    if order[0] == "ESD":
        return f"As in the paper, ESD loses least {where}: {listed}."
    return f"The ranking differs from the paper, where ESD loses least {where}. Here: {listed}."


def measured_f1(counts: Sequence[Counts]) -> Measured:
    """Return micro F1 without an interval."""
    return Measured(_f1(counts))


def _f1(counts: Sequence[Counts]) -> float:
    return sum(counts, Counts()).f1


def _loss(first: float, score: float) -> float:
    return 100 * (first - score) / first if first else 0.0
