"""Paired bootstrap: the difference between two configs on the same episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanshot.evaluation.counts import Counts
from spanshot.evaluation.report import Interval, Metric, Report

Draws = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Difference:
    """The difference in F1 between two configs, with a 95 % interval."""

    f1: float
    interval: Interval

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval.low > 0 or self.interval.high < 0


def difference(
    first: Sequence[Report],
    second: Sequence[Report],
    metric: Metric,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Return the mean F1 over the runs of ``first`` minus that of ``second``, all on the same episodes.

    The interval comes from resampled episodes: both sides are scored on the same ones, so that episodes that are
    hard for both cancel out.
    """
    sizes = {len(report.episodes) for report in (*first, *second)}
    if len(sizes) != 1:
        raise ValueError(f"the reports must be about the same episodes; found {sorted(sizes)} of them")
    (size,) = sizes
    exact = float(np.mean([r.f1(metric) for r in first]) - np.mean([r.f1(metric) for r in second]))
    if not size:
        return Difference(exact, Interval(0.0, 0.0))
    draws = np.random.default_rng(seed).integers(size, size=(resamples, size))
    sampled = _mean_scores(first, metric, draws) - _mean_scores(second, metric, draws)
    low, high = np.quantile(sampled, ((1 - level) / 2, (1 + level) / 2))
    return Difference(exact, Interval(float(low), float(high)))


def mean_interval(
    reports: Sequence[Report], metric: Metric, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Return the bootstrap interval of the mean F1 over several runs on the same episodes."""
    zero = Report(tuple(Counts() for _ in reports[0].episodes), {})
    return difference(reports, [zero], metric, level, resamples, seed).interval


def _mean_scores(reports: Sequence[Report], metric: Metric, draws: Draws) -> npt.NDArray[np.float64]:
    """Return the F1 of each draw of episodes, averaged over the reports. [resamples]"""
    total = np.zeros(len(draws))
    for report in reports:
        if metric == "mean_f1":
            total += np.array([counts.f1 for counts in report.episodes])[draws].mean(1)
            continue
        correct = np.array([counts.tp for counts in report.episodes], dtype=float)[draws].sum(1)
        errors = np.array([counts.fp + counts.fn for counts in report.episodes], dtype=float)[draws].sum(1)
        total += np.divide(2 * correct, 2 * correct + errors, out=np.zeros(len(draws)), where=correct > 0)
    return total / len(reports)
