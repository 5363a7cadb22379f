"""How good a trained run is on a split of its corpus, in numbers that go to JSON as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanshot.config import override, to_table
from spanshot.data.sources import Metric
from spanshot.errors import ConfigError
from spanshot.experiment import checkpoint
from spanshot.experiment.evaluate import evaluate, evaluate_biases
from spanshot.experiment.scoring import Report, mean_and_deviation
from spanshot.experiment.settings import RunSettings
from spanshot.methods import METHODS, Method, MetricMethod

METRICS: tuple[Metric, ...] = ("micro_f1", "mean_f1")
CHANGEABLE = ("data", "method")

Progress = Callable[[int, int], None]
"""Called with the number of episodes done and of all."""


@dataclass(frozen=True)
class Measured:
    """A run's report on a split."""

    run: Path
    split: str
    settings: RunSettings
    meta: dict[str, Any]
    o_bias: float
    report: Report
    without_o_bias: Report
    """The same where nothing is taken off O's score; the same report for methods that have no such bias."""

    @property
    def metric(self) -> Metric:
        """What the corpus is reported by."""
        return self.settings.data.metric

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "run": str(self.run),
            "split": self.split,
            "method": {"name": self.settings.method_name, **to_table(self.settings.method)},
            "data": {"kind": self.settings.data_kind, **to_table(self.settings.data)},
            "seed": self.settings.seed,
            "step": self.meta.get("step"),
            "dev_f1": self.meta.get("dev_f1"),
            "metric": self.metric,
            "o_bias": self.o_bias,
            **self.report.to_dict(),
            "without_o_bias": self.without_o_bias.to_dict(),
        }


def measure(
    run: Path,
    split: str = "test",
    assignments: Iterable[str] = (),
    first: int = 0,
    progress: Progress | None = None,
) -> Measured:
    """Evaluate a run's best checkpoint on the split of its corpus; on the ``first`` episodes only, if not 0.

    ``assignments`` such as ``data.folder=...`` say where the corpus is now, or change how a method decides.
    """
    saved = checkpoint.load(run)
    settings = _changed(saved.settings, assignments)
    method = saved.method if settings.method == saved.settings.method else _reopened(saved.method, settings)
    episodes = settings.data.episodes(split)
    episodes = episodes[:first] if first else episodes

    def watch(done: int) -> None:
        if progress:
            progress(done, len(episodes))

    if isinstance(method, MetricMethod):
        o_bias = method.o_bias.item()
        reports = evaluate_biases(method, episodes, sorted({0.0, o_bias}), settings.data.metric, watch).reports
    else:
        o_bias = 0.0
        reports = {0.0: evaluate(method, episodes, watch)}
    return Measured(run, split, settings, saved.meta, o_bias, reports[o_bias], reports[0.0])


def summary(measured: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over runs, for each score."""
    found = {}
    for name in (*METRICS, "precision", "recall"):
        mean, deviation = mean_and_deviation([getattr(own.report, name) for own in measured])
        found[name] = {"mean": mean, "deviation": deviation}
    for name in METRICS:
        mean, deviation = mean_and_deviation([getattr(own.without_o_bias, name) for own in measured])
        found[f"{name}_without_o_bias"] = {"mean": mean, "deviation": deviation}
    return found


def _changed(settings: RunSettings, assignments: Iterable[str]) -> RunSettings:
    assignments = list(assignments)
    for assignment in assignments:
        if assignment.partition(".")[0] not in CHANGEABLE:
            raise ConfigError(
                f"{assignment!r}: only settings of {' and '.join(f'[{name}]' for name in CHANGEABLE)} can be "
                "changed once a model is trained"
            )
    return RunSettings.of(override(settings.to_table(), assignments)) if assignments else settings


def _reopened(method: Method, settings: RunSettings) -> Method:
    """The method with its weights under other settings, which must not ask for other weights."""
    changed = METHODS[settings.method_name](method.encoder, settings.method)
    try:
        changed.load_state_dict(method.state_dict())
    except RuntimeError:
        raise ConfigError(
            "the model was trained with other weights than these [method] settings ask for; train it anew"
        ) from None
    return changed.eval()
