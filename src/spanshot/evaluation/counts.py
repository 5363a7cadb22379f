"""How good the found spans are: counts that add up, and all scores derived from them.

Spans are counted sentence by sentence (a span is right if start, end and label are), then summed.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanshot.types import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Right, wrong and missed spans. Adds up with ``+`` and ``sum``.

    >>> counts = Counts(tp=1, fn=1) + Counts(tp=2, fp_type=1)
    >>> counts.precision, counts.recall, counts.f1
    (0.75, 0.75, 0.75)
    """

    tp: int = 0
    """Found as marked."""
    fn: int = 0
    """Marked but not found as such."""
    fp_span: int = 0
    """Found with a boundary that no marked span has; FP-Span in the paper."""
    fp_type: int = 0
    """Found with the boundary of a marked span, but under another label; FP-Type in the paper."""

    @property
    def fp(self) -> int:
        """Found but not marked as such."""
        return self.fp_span + self.fp_type

    @property
    def precision(self) -> float:
        """How much of what was found is right; 0 if nothing was found."""
        return self.tp / (self.tp + self.fp) if self.tp else 0.0

    @property
    def recall(self) -> float:
        """How much of what was marked is found; 0 if nothing was marked."""
        return self.tp / (self.tp + self.fn) if self.tp else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if nothing is right."""
        return 2 * self.tp / (2 * self.tp + self.fp + self.fn) if self.tp else 0.0

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(
            tp=self.tp + other.tp,
            fn=self.fn + other.fn,
            fp_span=self.fp_span + other.fp_span,
            fp_type=self.fp_type + other.fp_type,
        )

    def __radd__(self, other: int) -> Counts:
        """``sum`` starts at 0."""
        return self if other == 0 else NotImplemented

    def to_dict(self) -> dict[str, float]:
        """The counts and the scores, for JSON."""
        names = ("precision", "recall", "f1", "tp", "fp", "fn", "fp_span", "fp_type")
        return {name: getattr(self, name) for name in names}


def count(gold: Iterable[Span], found: Iterable[Span]) -> Counts:
    """Compares the spans of one sentence.

    >>> gold = [Span(0, 2, "city"), Span(4, 5, "date")]
    >>> found = [Span(0, 2, "person"), Span(3, 5, "date")]
    >>> count(gold, found)
    Counts(tp=0, fn=2, fp_span=1, fp_type=1)
    """
    return sum(count_by_label(gold, found).values(), Counts())


def count_by_label(gold: Iterable[Span], found: Iterable[Span]) -> dict[str, Counts]:
    """Compares the spans of one sentence, label by label; a wrong span counts for the label it was given."""
    gold, found = set(gold), set(found)
    bounds = {(span.start, span.end) for span in gold}
    table: dict[str, Counts] = defaultdict(Counts)
    for span in gold & found:
        table[span.label] += Counts(tp=1)
    for span in gold - found:
        table[span.label] += Counts(fn=1)
    for span in found - gold:
        right_bounds = (span.start, span.end) in bounds
        table[span.label] += Counts(fp_type=1) if right_bounds else Counts(fp_span=1)
    return {label: table[label] for label in sorted(table)}


def add_tables(tables: Iterable[Mapping[str, Counts]]) -> dict[str, Counts]:
    """Sums counts by label, as of the sentences of an episode."""
    total: dict[str, Counts] = defaultdict(Counts)
    for table in tables:
        for label, counts in table.items():
            total[label] += counts
    return {label: total[label] for label in sorted(total)}


@dataclass(frozen=True, slots=True)
class Report:
    """What an evaluation over episodes says.

    ``micro_f1`` is over all episodes' spans together, as Few-NERD reports it; ``mean_f1`` is the mean of the
    episodes' own F1, as SNIPS reports it. An episode in which nothing is right has an F1 of 0, even if
    nothing was marked in it.
    """

    episodes: tuple[Counts, ...]
    labels: Mapping[str, Counts]

    def __post_init__(self) -> None:
        object.__setattr__(self, "episodes", tuple(self.episodes))
        if (by_label := sum(self.labels.values(), Counts())) != self.total:
            raise ValueError(f"the labels' counts must add up to the episodes': {by_label} != {self.total}")

    @classmethod
    def of(cls, tables: Iterable[Mapping[str, Counts]]) -> Report:
        """A report on episodes, each given by its counts by label."""
        tables = list(tables)
        return cls(tuple(sum(table.values(), Counts()) for table in tables), add_tables(tables))

    @property
    def total(self) -> Counts:
        """All episodes' counts together."""
        return sum(self.episodes, Counts())

    @property
    def precision(self) -> float:
        """Over all episodes' spans together."""
        return self.total.precision

    @property
    def recall(self) -> float:
        """Over all episodes' spans together."""
        return self.total.recall

    @property
    def micro_f1(self) -> float:
        """F1 over all episodes' spans together."""
        return self.total.f1

    @property
    def mean_f1(self) -> float:
        """The mean of the episodes' F1; 0 without episodes."""
        return statistics.fmean(counts.f1 for counts in self.episodes) if self.episodes else 0.0

    def confidence(self, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> dict[str, tuple[float, float]]:
        """Bootstrap intervals of ``micro_f1`` and ``mean_f1``: percentiles over episodes drawn anew.

        They say how far the choice of test episodes matters, not how far another training run would.
        """
        if not self.episodes:
            return {"micro_f1": (0.0, 0.0), "mean_f1": (0.0, 0.0)}
        rng = np.random.default_rng(seed)  # its own generator: the process's stays untouched
        size = len(self.episodes)
        tallies = np.array([(c.tp, c.fp + c.fn) for c in self.episodes], dtype=float)  # (episodes, 2)
        f1 = np.array([c.f1 for c in self.episodes])
        micro, mean = np.zeros(resamples), np.zeros(resamples)
        for i in range(resamples):
            drawn = rng.integers(size, size=size)
            right, errors = tallies[drawn].sum(axis=0)
            micro[i] = 2 * right / (2 * right + errors) if right else 0.0
            mean[i] = f1[drawn].mean()
        ends = ((1 - level) / 2, (1 + level) / 2)
        intervals = {"micro_f1": np.quantile(micro, ends), "mean_f1": np.quantile(mean, ends)}
        return {name: (float(low), float(high)) for name, (low, high) in intervals.items()}

    def to_dict(self, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> dict[str, Any]:
        """Everything, for JSON."""
        intervals = self.confidence(level, resamples, seed)
        total = self.total.to_dict()
        del total["f1"]  # stands as micro_f1, beside the mean
        return {
            "episodes": len(self.episodes),
            "micro_f1": self.micro_f1,
            "mean_f1": self.mean_f1,
            **total,
            "confidence": {"level": level, **{name: list(ends) for name, ends in intervals.items()}},
            "labels": {label: counts.to_dict() for label, counts in self.labels.items()},
        }


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The mean of several runs' scores and their sample standard deviation, 0 for a single run.

    >>> mean_and_deviation([61.0, 62.0, 63.0])
    (62.0, 1.0)
    """
    if not values:
        raise ValueError("a mean needs at least one value; found none")
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0
