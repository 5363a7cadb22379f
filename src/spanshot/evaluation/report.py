"""The result of an evaluation, in one type from counting to JSON, table and page."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from spanshot.errors import DataError
from spanshot.evaluation.counts import Counts, add_tables, count_by_label, count_confusions
from spanshot.json_text import Fields, JsonValue
from spanshot.types import Span

Metric = Literal["micro_f1", "mean_f1"]
METRICS: tuple[Metric, ...] = ("micro_f1", "mean_f1")


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def share_interval(count: int, total: int) -> Interval:
    """Return the 95 % Wilson interval of a share; 0 to 1 if the total is 0.

    >>> low, high = share_interval(9, 10)
    >>> round(low, 2), round(high, 2)
    (0.6, 0.98)
    """
    if not total:
        return Interval(0.0, 1.0)
    z = 1.96
    middle, spread = count + z * z / 2, z * (count * (total - count) / total + z * z / 4) ** 0.5
    return Interval(max(0.0, (middle - spread) / (total + z * z)), min(1.0, (middle + spread) / (total + z * z)))


@dataclass(frozen=True, slots=True)
class Report:
    """Counts of an evaluation over episodes; every score is derived from them.

    ``micro_f1`` counts the spans of all episodes together, as Few-NERD reports it. ``mean_f1`` averages the F1 of
    the episodes, as SNIPS reports it; an episode without a correct span has an F1 of 0, even if it has no gold span.
    """

    episodes: tuple[Counts, ...]
    labels: Mapping[str, Counts]
    confusions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How often a span of one label was found under another: (gold label, predicted label) -> count."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "episodes", tuple(self.episodes))
        if (by_label := sum(self.labels.values(), Counts())) != self.total:
            raise ValueError(f"the labels' counts must add up to the episodes': {by_label} != {self.total}")

    @classmethod
    def of(
        cls, tables: Iterable[Mapping[str, Counts]], confusions: Mapping[tuple[str, str], int] | None = None
    ) -> Report:
        """Build a report from the counts by label of each episode."""
        tables = list(tables)
        return cls(tuple(sum(table.values(), Counts()) for table in tables), add_tables(tables), confusions or {})

    @classmethod
    def of_sentences(cls, pairs: Iterable[tuple[Iterable[Span], Iterable[Span]]]) -> Report:
        """Build a report from (gold spans, predicted spans) of each sentence. Each sentence is one episode."""
        tables, confusions = [], Counter[tuple[str, str]]()
        for gold, predicted in pairs:
            gold, predicted = set(gold), set(predicted)
            tables.append(count_by_label(gold, predicted))
            confusions += count_confusions(gold, predicted)
        return cls.of(tables, confusions)

    @property
    def total(self) -> Counts:
        """Counts of all episodes together."""
        return sum(self.episodes, Counts())

    @property
    def precision(self) -> float:
        """Precision over the spans of all episodes together."""
        return self.total.precision

    @property
    def recall(self) -> float:
        """Recall over the spans of all episodes together."""
        return self.total.recall

    @property
    def micro_f1(self) -> float:
        """F1 over the spans of all episodes together."""
        return self.total.f1

    @property
    def mean_f1(self) -> float:
        """Mean F1 of the episodes; 0 without episodes."""
        return statistics.fmean(counts.f1 for counts in self.episodes) if self.episodes else 0.0

    def f1(self, metric: Metric) -> float:
        """Return the F1 that a corpus is reported by."""
        return self.micro_f1 if metric == "micro_f1" else self.mean_f1

    def confidence(self, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> dict[Metric, Interval]:
        """Return bootstrap intervals of ``micro_f1`` and ``mean_f1``: percentiles over resampled episodes.

        They show how much the choice of test episodes matters, not how much another training run would differ.
        """
        if not self.episodes:
            return {name: Interval(0.0, 0.0) for name in METRICS}
        rng = np.random.default_rng(seed)  # a separate generator: the process-wide one stays untouched
        size = len(self.episodes)
        tallies = np.array([(c.tp, c.fp + c.fn) for c in self.episodes], dtype=float)  # (episodes, 2)
        f1 = np.array([c.f1 for c in self.episodes])
        micro, mean = np.zeros(resamples), np.zeros(resamples)
        for i in range(resamples):
            drawn = rng.integers(size, size=size)
            correct, errors = tallies[drawn].sum(axis=0)
            micro[i] = 2 * correct / (2 * correct + errors) if correct else 0.0
            mean[i] = f1[drawn].mean()
        ends = ((1 - level) / 2, (1 + level) / 2)
        intervals: dict[Metric, np.ndarray] = {
            "micro_f1": np.quantile(micro, ends),
            "mean_f1": np.quantile(mean, ends),
        }
        return {name: Interval(float(low), float(high)) for name, (low, high) in intervals.items()}

    def to_dict(self, *, counts_of_episodes: bool = False) -> dict[str, JsonValue]:
        """Return all figures for JSON. ``counts_of_episodes`` adds what `from_dict` needs."""
        total: dict[str, JsonValue] = {name: value for name, value in self.total.to_dict().items() if name != "f1"}
        confidence: dict[str, JsonValue] = {name: list(ends) for name, ends in self.confidence().items()}
        record: dict[str, JsonValue] = {
            "episodes": len(self.episodes),
            "micro_f1": self.micro_f1,
            "mean_f1": self.mean_f1,
            **total,
            "confidence": {"level": 0.95, **confidence},
            "labels": {label: counts.to_dict() for label, counts in self.labels.items()},
            "confusions": confusions_to_list(self.confusions),
        }
        if counts_of_episodes:
            record["episode_counts"] = [[c.tp, c.fn, c.fp_span, c.fp_type] for c in self.episodes]
        return record

    @classmethod
    def from_dict(cls, record: JsonValue) -> Report:
        """Read a report that was written with ``counts_of_episodes``. Derived figures are computed again."""
        fields = Fields.of(record)
        labels = fields.object("labels")
        confusions = (Fields.of(item) for item in fields.list("confusions"))
        try:
            return cls(
                tuple(map(_counts_from_list, fields.list("episode_counts"))),
                {label: _counts_from_fields(labels.object(label)) for label in labels.record},
                {(item.text("gold"), item.text("predicted")): item.integer("count") for item in confusions},
            )
        except ValueError as problem:
            raise DataError(str(problem)) from None


def confusions_to_list(confusions: Mapping[tuple[str, str], int]) -> list[JsonValue]:
    """Return confusions for JSON, the most frequent first."""
    ordered = sorted(confusions.items(), key=lambda item: (-item[1], item[0]))
    return [{"gold": gold, "predicted": predicted, "count": count} for (gold, predicted), count in ordered]


def _counts_from_fields(fields: Fields) -> Counts:
    return Counts(
        tp=fields.integer("tp"),
        fn=fields.integer("fn"),
        fp_span=fields.integer("fp_span"),
        fp_type=fields.integer("fp_type"),
    )


def _counts_from_list(value: JsonValue) -> Counts:
    numbers = [item for item in value if isinstance(item, int)] if isinstance(value, Sequence) else []
    if len(numbers) != 4:
        raise DataError("episode counts must be lists of four whole numbers")
    tp, fn, fp_span, fp_type = numbers
    return Counts(tp=tp, fn=fn, fp_span=fp_span, fp_type=fp_type)
