"""Evaluate a trained run on a split of its corpus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from spanshot.errors import ConfigError
from spanshot.evaluation.report import Report
from spanshot.evaluation.runs import RunReport, Subject
from spanshot.research import checkpoint
from spanshot.research.corpora.episode_files import EpisodeFiles, read_episodes
from spanshot.research.experiments.evaluate import (
    evaluate,
    evaluate_biases,
    evaluate_variants,
    fit,
    fit_finetuned,
)
from spanshot.research.learning.metric import MetricTagger
from spanshot.research.methods import MetricMethod
from spanshot.research.training.folder import read_result
from spanshot.research.training.pace import Stopwatch
from spanshot.research.training.settings import RunSettings
from spanshot.settings import override
from spanshot.types import Episode

CHANGEABLE = ("data", "method")

Progress = Callable[[int, int], None]
"""Called with the number of episodes evaluated so far and of all."""


def subject(settings: RunSettings, split: str, step: int | None, dev_f1: float | None) -> Subject:
    """Identify the evaluation of a checkpoint (by its step and dev F1) on a split."""
    record = json.loads(json.dumps(settings.to_table()))  # as it is read back from JSON
    return Subject(split, record["method"], record["data"], settings.seed, step, dev_f1)


def evaluation_file(run: Path, split: str, first: int = 0) -> Path:
    """Return the file in a run's folder for the report on a split, or on its first episodes only."""
    return run / f"evaluation_{split}{f'_first_{first}' if first else ''}.json"


def measure(
    run: Path,
    split: str = "test",
    assignments: Iterable[str] = (),
    first: int = 0,
    progress: Progress | None = None,
    on: Path | None = None,
    *,
    finetune: bool = False,
    device: str | None = None,
    tune_on: Path | None = None,
    o_bias: float | None = None,
) -> RunReport:
    """Evaluate the best checkpoint of a run on a split of its corpus, or on the first episodes of it (0: all).

    ``on`` is a file of episodes to use instead of the split. ``assignments`` such as ``data.folder=...`` override
    settings of the corpus or of the method. ``finetune`` fine-tunes metric methods on each support set. ``device``
    is a torch device such as ``cuda``; by default a GPU is used if there is one. ``tune_on`` is a file of dev episodes
    to choose the O bias on again, for settings that differ from those in training; ``o_bias`` sets it.
    """
    saved = checkpoint.load(run)
    record = checkpoint.read_record(run)
    trained = RunSettings.of({name: value for name, value in record.items() if name != "result"})
    outcome = record.get("result", {})
    settings = _changed(trained, assignments)
    if on is not None:
        settings = replace(settings, data_kind="episodes", data=EpisodeFiles(*[str(on)] * 3))
    unchanged = settings.model == saved.settings
    method = saved.method if unchanged else checkpoint.reopened(saved.method, settings.model)
    method = method.to(device or _default_device())
    if finetune and not isinstance(method, MetricMethod):
        raise ConfigError(f"{method.name} always fine-tunes on the support set; leave --finetune out")
    episodes = settings.data.episodes(split)
    episodes = episodes[:first] if first else episodes
    stopwatch = Stopwatch()
    learn = fit_finetuned if finetune else fit

    def watch(done: int) -> None:
        if progress:
            progress(done, len(episodes))

    without_o_bias: Report | None = None
    if isinstance(method, MetricMethod):
        if tune_on is not None and o_bias is None:
            dev, o_biases = read_episodes(tune_on), settings.train.o_biases
            o_bias = evaluate_biases(method, dev, o_biases, settings.data.metric).o_bias
        if o_bias is not None:
            method.o_bias.fill_(o_bias)
        variants = {"unchanged": _unchanged, "without O bias": _without_bias}
        reports = evaluate_variants(method, episodes, variants, watch, stopwatch, learn)
        report, without_o_bias = reports["unchanged"], reports["without O bias"]
        o_bias = method.o_bias.item()
    else:
        report = evaluate(method, episodes, watch, stopwatch, learn)
    result = read_result(run)
    return RunReport(
        run=str(run),
        subject=subject(settings, split, outcome.get("step"), outcome.get("dev_f1")),
        metric=settings.data.metric,
        report=report,
        o_bias=o_bias,
        without_o_bias=without_o_bias,
        parameters=sum(weight.numel() for weight in method.parameters()),
        seconds_to_learn=stopwatch.pace.seconds_to_learn,
        seconds_per_sentence=stopwatch.pace.seconds_per_sentence,
        digest=_digest(episodes),
        training_seconds=result.seconds if result else None,
    )


def _default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _unchanged(tagger: MetricTagger) -> MetricTagger:
    return tagger


def _without_bias(tagger: MetricTagger) -> MetricTagger:
    return replace(tagger, o_bias=0.0)


def _digest(episodes: Sequence[Episode]) -> str:
    digest = hashlib.sha256()
    for episode in episodes:
        digest.update(repr(episode).encode())
    return digest.hexdigest()[:16]


def _changed(settings: RunSettings, assignments: Iterable[str]) -> RunSettings:
    assignments = list(assignments)
    for assignment in assignments:
        if assignment.partition(".")[0] not in CHANGEABLE:
            raise ConfigError(
                f"{assignment!r}: only settings of {' and '.join(f'[{name}]' for name in CHANGEABLE)} can be "
                "changed once a model is trained"
            )
    return RunSettings.of(override(settings.to_table(), assignments)) if assignments else settings
