"""Reports on trained runs, alone and side by side, and their JSON form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spanshot.errors import DataError
from spanshot.evaluation.counts import Spread, spread
from spanshot.evaluation.paired import Difference, difference
from spanshot.evaluation.report import METRICS, Interval, Metric, Report
from spanshot.json_text import Fields, JsonObject, JsonValue


@dataclass(frozen=True)
class Subject:
    """Identifies an evaluation: a checkpoint (its settings, step and dev F1) and a split of a corpus."""

    split: str
    method: JsonObject
    """The method's ``name`` and settings."""
    data: JsonObject
    """The ``kind`` of the corpus and its settings."""
    seed: int
    step: int | None
    dev_f1: float | None

    def to_dict(self) -> dict[str, JsonValue]:
        """Return all fields for JSON."""
        return {
            "split": self.split,
            "method": dict(self.method),
            "data": dict(self.data),
            "seed": self.seed,
            "step": self.step,
            "dev_f1": self.dev_f1,
        }

    @classmethod
    def from_dict(cls, record: JsonValue) -> Subject:
        """Read what `to_dict` returned."""
        fields = Fields.of(record)
        step = None if fields.value("step") is None else fields.integer("step")
        method, data = fields.object("method").record, fields.object("data").record
        return cls(fields.text("split"), method, data, fields.integer("seed"), step, fields.optional_number("dev_f1"))


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The evaluation of one trained run."""

    run: str
    """Folder of the run."""
    subject: Subject
    metric: Metric
    """The F1 that the corpus is reported by."""
    report: Report
    o_bias: float | None
    """As tuned on the dev split; None for methods without an O bias."""
    without_o_bias: Report | None
    """The same evaluation with an O bias of 0; None for methods without an O bias."""
    parameters: int
    seconds_to_learn: float
    """Mean time to learn a support set."""
    seconds_per_sentence: float
    """Mean time to tag a query sentence."""
    digest: str
    """Digest of the episodes; equal if they are."""
    training_seconds: float | None = None
    """Duration of the training; None if unknown."""

    @property
    def f1(self) -> float:
        """F1 by the corpus's metric."""
        return self.report.f1(self.metric)

    @property
    def interval(self) -> Interval:
        """95 % interval of `f1`."""
        return self.report.confidence()[self.metric]

    @property
    def f1_without_o_bias(self) -> float | None:
        """F1 by the corpus's metric with an O bias of 0."""
        return self.without_o_bias.f1(self.metric) if self.without_o_bias else None

    @property
    def interval_without_o_bias(self) -> Interval | None:
        """95 % interval of `f1_without_o_bias`."""
        return self.without_o_bias.confidence()[self.metric] if self.without_o_bias else None

    def to_dict(self, *, counts_of_episodes: bool = False) -> dict[str, JsonValue]:
        """Return all figures for JSON. ``counts_of_episodes`` adds what `from_dict` needs."""
        without = self.without_o_bias
        return {
            "run": self.run,
            **self.subject.to_dict(),
            "metric": self.metric,
            "f1": self.f1,
            "interval": list(self.interval),
            "o_bias": self.o_bias,
            "parameters": self.parameters,
            "training_seconds": self.training_seconds,
            "seconds_to_learn": self.seconds_to_learn,
            "seconds_per_sentence": self.seconds_per_sentence,
            "digest": self.digest,
            **self.report.to_dict(counts_of_episodes=counts_of_episodes),
            "without_o_bias": without.to_dict(counts_of_episodes=counts_of_episodes) if without else None,
        }

    @classmethod
    def from_dict(cls, record: JsonValue) -> RunReport:
        """Read a report that was written with ``counts_of_episodes``."""
        fields = Fields.of(record)
        metric: Metric = "mean_f1" if fields.text("metric") == "mean_f1" else "micro_f1"
        if fields.text("metric") not in METRICS:
            raise DataError(f"field 'metric' must be one of {', '.join(METRICS)}")
        without = fields.value("without_o_bias")
        return cls(
            run=fields.text("run"),
            subject=Subject.from_dict(record),
            metric=metric,
            report=Report.from_dict(record),
            o_bias=fields.optional_number("o_bias"),
            without_o_bias=None if without is None else Report.from_dict(without),
            parameters=fields.integer("parameters"),
            seconds_to_learn=fields.number("seconds_to_learn"),
            seconds_per_sentence=fields.number("seconds_per_sentence"),
            digest=fields.text("digest"),
            training_seconds=fields.optional_number("training_seconds"),
        )


FIGURES: Mapping[str, Callable[[RunReport], float | None]] = {
    "f1": lambda run: run.f1,
    "f1_without_o_bias": lambda run: run.f1_without_o_bias,
    "o_bias": lambda run: run.o_bias,
    "precision": lambda run: run.report.precision,
    "recall": lambda run: run.report.recall,
    "micro_f1": lambda run: run.report.micro_f1,
    "mean_f1": lambda run: run.report.mean_f1,
    "dev_f1": lambda run: run.subject.dev_f1,
    "parameters": lambda run: run.parameters,
    "training_seconds": lambda run: run.training_seconds,
    "step": lambda run: run.subject.step,
    "seconds_to_learn": lambda run: run.seconds_to_learn,
    "seconds_per_sentence": lambda run: run.seconds_per_sentence,
}
"""Figures that are averaged over runs."""


def spread_over(runs: tuple[RunReport, ...], figure: str) -> Spread | None:
    """Return mean and deviation of a figure over runs; None if a run lacks it."""
    values = [FIGURES[figure](run) for run in runs]
    measured = [value for value in values if value is not None]
    return spread(measured) if measured and len(measured) == len(values) else None


def spreads(runs: tuple[RunReport, ...]) -> dict[str, JsonValue]:
    """Return mean and deviation of every figure over runs, for JSON."""
    by_figure = {figure: spread_over(runs, figure) for figure in FIGURES}
    return {figure: over.to_dict() if over else None for figure, over in by_figure.items()}


@dataclass(frozen=True)
class ConfigReport:
    """One config and the evaluations of its runs, one per seed."""

    name: str
    config: str
    method: str
    runs: tuple[RunReport, ...]

    def over_seeds(self, figure: str) -> Spread | None:
        """Return mean and deviation of a figure; None if the method lacks it."""
        return spread_over(self.runs, figure)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return all figures for JSON."""
        return {
            "name": self.name,
            "config": self.config,
            "method": self.method,
            "runs": [run.to_dict() for run in self.runs],
            "over_seeds": spreads(self.runs),
        }


@dataclass(frozen=True)
class ComparisonReport:
    """Several configs evaluated on the same episodes."""

    split: str
    first: int
    """Only the first N episodes of the split were used (0: all)."""
    configs: tuple[ConfigReport, ...]

    def __post_init__(self) -> None:
        if not self.configs or not all(config.runs for config in self.configs):
            raise ValueError("a comparison needs at least one config, and each config at least one run")

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.configs[0].runs[0].report.episodes)

    @property
    def metric(self) -> Metric:
        """The F1 that the corpus is reported by."""
        return self.configs[0].runs[0].metric

    @property
    def best(self) -> ConfigReport:
        """The config with the highest mean F1."""
        return max(self.configs, key=lambda config: config.over_seeds("f1") or Spread(0.0, 0.0))

    @property
    def differences(self) -> tuple[tuple[ConfigReport, Difference], ...]:
        """The lead of the best config over each other one, by paired bootstrap over the episodes."""
        best = [run.report for run in self.best.runs]
        return tuple(
            (config, difference(best, [run.report for run in config.runs], self.metric))
            for config in self.configs
            if config is not self.best
        )

    def to_dict(self) -> dict[str, JsonValue]:
        """Return all figures for JSON."""
        return {
            "split": self.split,
            "first": self.first,
            "episodes": self.episodes,
            "metric": self.metric,
            "level": 0.95,
            "data": dict(self.configs[0].runs[0].subject.data),
            "configs": [config.to_dict() for config in self.configs],
            "differences": [
                {
                    "first": self.best.name,
                    "second": config.name,
                    "f1": difference.f1,
                    "interval": list(difference.interval),
                }
                for config, difference in self.differences
            ],
        }
