"""Count correct and wrong spans, and derive precision, recall and F1.

Spans are counted sentence by sentence and then summed. A span is correct if its start, end and label are.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spanshot.types import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Correct, wrong and missed spans. Adds up with ``+`` and ``sum``.

    >>> counts = Counts(tp=1, fn=1) + Counts(tp=2, fp_type=1)
    >>> counts.precision, counts.recall, counts.f1
    (0.75, 0.75, 0.75)
    """

    tp: int = 0
    """Correct spans."""
    fn: int = 0
    """Gold spans that were not found."""
    fp_span: int = 0
    """Wrong spans whose boundaries match no gold span; FP-Span in the paper."""
    fp_type: int = 0
    """Wrong spans with the boundaries of a gold span, but another label; FP-Type in the paper."""

    @property
    def fp(self) -> int:
        """All wrong spans."""
        return self.fp_span + self.fp_type

    @property
    def precision(self) -> float:
        """Share of the predicted spans that are correct; 0 if none is."""
        return self.tp / (self.tp + self.fp) if self.tp else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold spans that were found; 0 if none was."""
        return self.tp / (self.tp + self.fn) if self.tp else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if no span is correct."""
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
        """Support ``sum``, which starts at 0."""
        return self if other == 0 else NotImplemented

    def to_dict(self) -> dict[str, float]:
        """Return counts and scores for JSON."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "tp": self.tp,
            "fp": self.fp,
            "fn": self.fn,
            "fp_span": self.fp_span,
            "fp_type": self.fp_type,
        }


def count(gold: Iterable[Span], predicted: Iterable[Span]) -> Counts:
    """Compare the spans of one sentence.

    >>> gold = [Span(0, 2, "city"), Span(4, 5, "date")]
    >>> predicted = [Span(0, 2, "person"), Span(3, 5, "date")]
    >>> count(gold, predicted)
    Counts(tp=0, fn=2, fp_span=1, fp_type=1)
    """
    return sum(count_by_label(gold, predicted).values(), Counts())


def count_by_label(gold: Iterable[Span], predicted: Iterable[Span]) -> dict[str, Counts]:
    """Compare the spans of one sentence, label by label. A wrong span counts for its predicted label."""
    gold, predicted = set(gold), set(predicted)
    bounds = {(span.start, span.end) for span in gold}
    table: dict[str, Counts] = defaultdict(Counts)
    for span in gold & predicted:
        table[span.label] += Counts(tp=1)
    for span in gold - predicted:
        table[span.label] += Counts(fn=1)
    for span in predicted - gold:
        right_bounds = (span.start, span.end) in bounds
        table[span.label] += Counts(fp_type=1) if right_bounds else Counts(fp_span=1)
    return {label: table[label] for label in sorted(table)}


def count_confusions(gold: Iterable[Span], predicted: Iterable[Span]) -> Counter[tuple[str, str]]:
    """Count spans of one sentence that were found under another label, by (gold label, predicted label).

    >>> count_confusions([Span(0, 2, "city")], [Span(0, 2, "club"), Span(3, 4, "city")])
    Counter({('city', 'club'): 1})
    """
    gold, predicted = set(gold), set(predicted)
    missed: dict[tuple[int, int], list[str]] = defaultdict(list)
    for span in gold - predicted:
        missed[span.start, span.end].append(span.label)
    return Counter((label, span.label) for span in predicted - gold for label in missed.get((span.start, span.end), ()))


def add_tables(tables: Iterable[Mapping[str, Counts]]) -> dict[str, Counts]:
    """Sum counts by label, such as those of the sentences of an episode."""
    total: dict[str, Counts] = defaultdict(Counts)
    for table in tables:
        for label, counts in table.items():
            total[label] += counts
    return {label: total[label] for label in sorted(total)}


class Spread(NamedTuple):
    """Mean and sample standard deviation of a score over several runs."""

    mean: float
    deviation: float

    def to_dict(self) -> dict[str, float]:
        """Return both for JSON."""
        return {"mean": self.mean, "deviation": self.deviation}


def spread(values: Sequence[float]) -> Spread:
    """Return mean and sample standard deviation; the deviation of a single value is 0.

    >>> spread([61.0, 62.0, 63.0])
    Spread(mean=62.0, deviation=1.0)
    """
    if not values:
        raise ValueError("a mean needs at least one value; found none")
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0)
