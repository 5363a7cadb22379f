"""How good a trained run is on a split of its corpus, in numbers that go to JSON as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spanshot.errors import ConfigError, did_you_mean
from spanshot.evaluation.counts import spread
from spanshot.evaluation.report import Report
from spanshot.research import checkpoint
from spanshot.research.corpora.source import Metric
from spanshot.research.corpora.sources import EpisodeFiles
from spanshot.research.experiments.evaluate import LEARNING, Learn, evaluate, evaluate_variants
from spanshot.research.learning.metric import MetricTagger
from spanshot.research.methods import Method, MetricMethod
from spanshot.research.training.pace import Pace, Stopwatch
from spanshot.research.training.settings import RunSettings
from spanshot.settings import override, to_table
from spanshot.types import Episode

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
    """As it was tuned on the dev split; ``learning`` may have changed it for a support set."""
    report: Report
    without_o_bias: Report
    """The same where nothing is taken off O's score; the same report for methods that have no such bias."""
    pace: Pace
    parameters: int
    digest: str
    """Of the episodes; equal if they are."""

    @property
    def metric(self) -> Metric:
        """What the corpus is reported by."""
        return self.settings.data.metric

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "run": str(self.run),
            **subject(self.settings, self.split, self.meta.get("step"), self.meta.get("dev_f1")),
            "metric": self.metric,
            "parameters": self.parameters,
            "pace": self.pace.to_dict(),
            "digest": self.digest,
            "o_bias": self.o_bias,
            **self.report.to_dict(),
            "without_o_bias": self.without_o_bias.to_dict(),
        }


def subject(settings: RunSettings, split: str, step: int | None, dev_f1: float | None) -> dict[str, Any]:
    """What an evaluation is an evaluation of, for JSON: a checkpoint by its step and dev F1, and a split."""
    return {
        "split": split,
        "method": settings.model.to_table()["method"],
        "data": {"kind": settings.data_kind, **to_table(settings.data)},
        "seed": settings.seed,
        "step": step,
        "dev_f1": dev_f1,
    }


def evaluation_file(run: Path, split: str, first: int = 0) -> Path:
    """Where the figures of a split, or of its first episodes only, lie in a run's folder."""
    return run / f"evaluation_{split}{f'_first_{first}' if first else ''}.json"


def measure(
    run: Path,
    split: str = "test",
    assignments: Iterable[str] = (),
    first: int = 0,
    progress: Progress | None = None,
    on: Path | None = None,
    learning: str = "plain",
) -> Measured:
    """Evaluate a run's best checkpoint on the split of its corpus; on the ``first`` episodes only, if not 0.

    ``on`` is a file of episodes to take in place of the split. ``assignments`` such as ``data.folder=...`` say where
    the corpus is now, or change how a method decides. ``learning`` other than plain has a metric method make more of
    each support set: ``calibrated`` gives it an O bias of its own, ``finetuned`` practises on it.
    """
    saved = checkpoint.load(run)
    settings = _changed(saved.settings, assignments)
    if on is not None:
        settings = replace(settings, data_kind="episodes", data=EpisodeFiles(*[str(on)] * 3))
    same = settings.model == saved.settings.model
    method = saved.method if same else checkpoint.reopened(saved.method, settings.model)
    episodes = settings.data.episodes(split)
    episodes = episodes[:first] if first else episodes

    def watch(done: int) -> None:
        if progress:
            progress(done, len(episodes))

    stopwatch = Stopwatch()
    learn = _learning(learning, method)
    if isinstance(method, MetricMethod):
        variants = {"as it is": _as_it_is, "without O bias": _without_bias}
        reports = evaluate_variants(method, episodes, variants, watch, stopwatch, learn)
        report, without = reports["as it is"], reports["without O bias"]
        o_bias = method.o_bias.item()
    else:
        report = without = evaluate(method, episodes, watch, stopwatch, learn)
        o_bias = 0.0
    return Measured(
        run,
        split,
        settings,
        saved.meta,
        o_bias,
        report=report,
        without_o_bias=without,
        pace=stopwatch.pace,
        parameters=sum(weights.numel() for weights in method.parameters()),
        digest=_digest(episodes),
    )


def _learning(name: str, method: Method) -> Learn:
    if name not in LEARNING:
        raise ConfigError(
            f"--learning must be one of {', '.join(LEARNING)}; found {name!r}{did_you_mean(name, LEARNING)}"
        )
    if name != "plain" and not isinstance(method, MetricMethod):
        raise ConfigError(f"{method.name} has its own way to learn a support set; leave --learning out")
    return LEARNING[name]


def _as_it_is(tagger: MetricTagger[Any]) -> MetricTagger[Any]:
    return tagger


def _without_bias(tagger: MetricTagger[Any]) -> MetricTagger[Any]:
    return replace(tagger, o_bias=0.0)


def summary(measured: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over runs, for each score."""
    found = {}
    for name in (*METRICS, "precision", "recall"):
        mean, deviation = spread([getattr(own.report, name) for own in measured])
        found[name] = {"mean": mean, "deviation": deviation}
    for name in METRICS:
        mean, deviation = spread([getattr(own.without_o_bias, name) for own in measured])
        found[f"{name}_without_o_bias"] = {"mean": mean, "deviation": deviation}
    return found


def _digest(episodes: Sequence[Episode]) -> str:
    found = hashlib.sha256()
    for episode in episodes:
        found.update(repr(episode).encode())
    return found.hexdigest()[:16]


def _changed(settings: RunSettings, assignments: Iterable[str]) -> RunSettings:
    assignments = list(assignments)
    for assignment in assignments:
        if assignment.partition(".")[0] not in CHANGEABLE:
            raise ConfigError(
                f"{assignment!r}: only settings of {' and '.join(f'[{name}]' for name in CHANGEABLE)} can be "
                "changed once a model is trained"
            )
    return RunSettings.of(override(settings.to_table(), assignments)) if assignments else settings
