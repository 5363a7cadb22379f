"""Several methods on the same episodes: train what is not trained yet, evaluate what is not evaluated, compare.

What has been done is read from the run folders, so a comparison that was stopped goes on where it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from spanshot.errors import CheckpointError, ConfigError
from spanshot.files import write_text
from spanshot.formats.files import read_text
from spanshot.research.checkpoint import new_method
from spanshot.research.experiments.comparison import Compared, Comparison, Figures
from spanshot.research.experiments.measure import evaluation_file, measure, subject
from spanshot.research.training.events import Event, Finished
from spanshot.research.training.run import RESULT, check_settings, has_ended, run_training
from spanshot.research.training.settings import RunSettings, config_name
from spanshot.settings import to_table

COMPARISON = "comparison.json"


@dataclass(frozen=True)
class ComparedRun:
    """One config under one seed, and the folder of its run."""

    name: str
    config: Path
    settings: RunSettings
    folder: Path

    @property
    def has_ended(self) -> bool:
        """Whether it needs no more training."""
        return has_ended(self.folder)


Progress = Callable[[ComparedRun, int, int], None]
"""Called with a run, and how many of its episodes are done and of all."""


# Before


def plan(
    configs: Sequence[Path], assignments: Sequence[str], folder: Path, seeds: Sequence[int] = ()
) -> list[ComparedRun]:
    """A run for each config and seed, if they can be compared; without ``seeds``, for the seed each config names."""
    if seeds and any(assignment.partition("=")[0] == "seed" for assignment in assignments):
        raise ConfigError("seeds are given twice; give either --seeds or seed=...")
    for one, other in combinations(configs, 2):
        if one.resolve() == other.resolve():
            raise ConfigError(f"{other} is given twice; give each config once")
    settings = [RunSettings.read(config, assignments) for config in configs]
    if seeds:
        settings = [replace(own, seed=seeds[0]) for own in settings]
    _check_comparable(configs, settings)
    runs = [
        ComparedRun(name, config, replace(own, seed=seed), folder / f"{name}-seed{seed}")
        for name, config, own in zip(names_of(configs), configs, settings, strict=True)
        for seed in seeds or (own.seed,)
    ]
    for run in runs:
        check_settings(run.settings, run.folder)
    return runs


def names_of(configs: Sequence[Path]) -> list[str]:
    """A name for each config; those of one name are told apart by the folders that they lie in."""
    plain = [config_name(config) for config in configs]
    often = Counter(plain)
    found = [
        name if often[name] == 1 else f"{config.resolve().parent.name}-{config.stem}"
        for name, config in zip(plain, configs, strict=True)
    ]
    for (one, its), (other, others) in combinations(zip(configs, found, strict=True), 2):
        if its == others:
            raise ConfigError(f"{one} and {other} would both be called {its}; rename one of them")
    return found


def _check_comparable(configs: Sequence[Path], settings: Sequence[RunSettings]) -> None:
    for config, own in zip(configs, settings, strict=True):
        if not own.train.steps:
            raise ConfigError(f"{config}: train.steps is 0, which leaves no checkpoint to compare")
        if differing := _differing(_data_of(settings[0]), _data_of(own)):
            raise ConfigError(
                f"{configs[0]} and {config} are not about the same episodes: {'; '.join(differing)} "
                "(KEY=VALUE sets it for all configs)"
            )
    for (one, its), (other, others) in combinations(zip(configs, settings, strict=True), 2):
        if its == others:
            raise ConfigError(f"{one} and {other} come to the same settings; give one of them only")


def _data_of(settings: RunSettings) -> dict[str, Any]:
    return {"kind": settings.data_kind, **to_table(settings.data)}


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys of [data] that differ; if the kind does, the others have nothing in common."""
    keys = ["kind"] if one["kind"] != other["kind"] else list(one)
    return [f"data.{key} is {one[key]!r} and {other[key]!r}" for key in keys if one[key] != other[key]]


def check(runs: Sequence[ComparedRun], split: str) -> None:
    """Open all that training will need, so that nothing turns out to be missing hours later."""
    to_train = {run.name: run.settings for run in runs if not run.has_ended}
    if not to_train:
        return
    data = runs[0].settings.data
    data.training()
    for name in dict.fromkeys(("dev", split)):
        data.episodes(name)
    with torch.random.fork_rng():
        for settings in to_train.values():
            new_method(settings)


# Train, evaluate, compare


def trainings(runs: Sequence[ComparedRun]) -> Iterator[tuple[ComparedRun, Iterator[Event]]]:
    """Each run that has not ended, with its events, which are to be taken to their end before the next run."""
    for run in runs:
        if not run.has_ended:
            yield run, run_training(run.settings, run.folder)


def compare(runs: Sequence[ComparedRun], split: str, first: int, progress: Progress) -> Comparison:
    """The figures of runs that have ended, side by side; they are noted in the folder above the runs as well."""
    noted = [evaluation(run, split, first, progress) for run in runs]
    _check_same_episodes(runs, noted, split, first)
    by_name: dict[str, list[tuple[ComparedRun, Figures]]] = {}
    for run, own in zip(runs, noted, strict=True):
        figures = Figures.of(run.folder, run.settings, result_of(run), own)
        by_name.setdefault(run.name, []).append((run, figures))
    found = Comparison(
        split=split,
        first=first,
        episodes=noted[0]["episodes"],
        metric=noted[0]["metric"],
        level=noted[0]["confidence"]["level"],
        data=_data_of(runs[0].settings),
        configs=tuple(
            Compared(
                name, str(of[0][0].config), of[0][0].settings.model.method_name, tuple(figures for _, figures in of)
            )
            for name, of in by_name.items()
        ),
    )
    write_text(runs[0].folder.parent / COMPARISON, [json.dumps(found.to_dict(), indent=2), "\n"])
    return found


def evaluation(run: ComparedRun, split: str, first: int, progress: Progress) -> dict[str, Any]:
    """The evaluation of a run that has ended: as noted in its folder, or made now and noted there."""
    noted = noted_evaluation(run, split, first)
    if noted is None:
        noted = measure(run.folder, split, (), first, lambda done, of: progress(run, done, of)).to_dict()
        write_text(evaluation_file(run.folder, split, first), [json.dumps(noted, indent=2), "\n"])
    return noted


def noted_evaluation(run: ComparedRun, split: str, first: int) -> dict[str, Any] | None:
    """The evaluation in a run's folder, if it is of this checkpoint and split, and tells all that is compared."""
    path = evaluation_file(run.folder, split, first)
    if not path.is_file():
        return None
    try:
        noted = json.loads(read_text(path))
    except json.JSONDecodeError:
        return None
    ended = result_of(run)
    wanted = subject(run.settings, split, ended.best_step, ended.best_f1)
    whole = isinstance(noted, dict) and noted.keys() >= {"pace", "parameters", "digest", *wanted}
    return noted if whole and all(noted[key] == value for key, value in wanted.items()) else None


def result_of(run: ComparedRun) -> Finished:
    """How a run ended."""
    path = run.folder / RESULT
    try:
        return Finished(**json.loads(read_text(path)))
    except (json.JSONDecodeError, TypeError) as problem:
        raise CheckpointError(f"{path}: damaged: {problem}; remove {run.folder} to train it anew") from None


def _check_same_episodes(
    runs: Sequence[ComparedRun], noted: Sequence[Mapping[str, Any]], split: str, first: int
) -> None:
    """The settings are the same by now, but a file may have changed between two evaluations."""
    for run, own in zip(runs, noted, strict=True):
        if own["digest"] != noted[0]["digest"]:
            one, other = (evaluation_file(folder, split, first) for folder in (runs[0].folder, run.folder))
            raise ConfigError(
                f"{one} and {other} are of different episodes, though their settings are the same: the data has "
                "changed; remove what is outdated to have it made anew"
            )
