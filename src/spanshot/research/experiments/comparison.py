"""What several methods came to on the same episodes, side by side, in numbers that go to JSON as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from spanshot.evaluation.counts import spread
from spanshot.research.methods import METHODS, MetricMethod
from spanshot.research.training.events import Finished
from spanshot.research.training.settings import RunSettings

_NOT_AVERAGED = {"seed", "run", "interval", "interval_without_o_bias"}


@dataclass(frozen=True)
class Figures:
    """What a run came to. F1 is by the corpus's metric; what a method without an O bias lacks is None."""

    seed: int
    run: str
    f1: float
    interval: tuple[float, float]
    o_bias: float | None
    f1_without_o_bias: float | None
    interval_without_o_bias: tuple[float, float] | None
    precision: float
    recall: float
    dev_f1: float
    parameters: int
    training_seconds: float
    best_step: int
    seconds_per_sentence: float
    seconds_to_learn: float

    @classmethod
    def of(cls, folder: Path, settings: RunSettings, ended: Finished, noted: Mapping[str, Any]) -> Figures:
        """From how a run's training ended and its evaluation, as noted in its folder."""
        metric, plain = noted["metric"], noted["without_o_bias"]
        biased = issubclass(METHODS[settings.model.method_name], MetricMethod)
        return cls(
            seed=settings.seed,
            run=str(folder),
            f1=noted[metric],
            interval=_interval(noted, metric),
            o_bias=noted["o_bias"] if biased else None,
            f1_without_o_bias=plain[metric] if biased else None,
            interval_without_o_bias=_interval(plain, metric) if biased else None,
            precision=noted["precision"],
            recall=noted["recall"],
            dev_f1=ended.best_f1,
            parameters=noted["parameters"],
            training_seconds=ended.seconds,
            best_step=ended.best_step,
            seconds_per_sentence=noted["pace"]["seconds_per_sentence"],
            seconds_to_learn=noted["pace"]["seconds_to_learn"],
        )


@dataclass(frozen=True)
class Compared:
    """One config and its runs, one per seed."""

    name: str
    config: str
    method: str
    runs: tuple[Figures, ...]

    def over_seeds(self, name: str) -> tuple[float, float] | None:
        """Mean and standard deviation of a figure; None if the method has no such figure."""
        values = [getattr(run, name) for run in self.runs]
        return None if None in values else spread(values)

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        averaged = {own.name: self.over_seeds(own.name) for own in fields(Figures) if own.name not in _NOT_AVERAGED}
        over = {name: found and {"mean": found[0], "deviation": found[1]} for name, found in averaged.items()}
        return {**asdict(self), "over_seeds": over}


@dataclass(frozen=True)
class Comparison:
    """All configs on the same episodes."""

    split: str
    first: int
    """How many of the split's first episodes; 0 for all."""
    episodes: int
    metric: str
    level: float
    """Of the bootstrap intervals."""
    data: Mapping[str, Any]
    configs: tuple[Compared, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {**asdict(self), "configs": [own.to_dict() for own in self.configs]}


def _interval(noted: Mapping[str, Any], metric: str) -> tuple[float, float]:
    low, high = noted["confidence"][metric]
    return low, high
