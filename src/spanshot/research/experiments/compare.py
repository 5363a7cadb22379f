"""Compare several configs on the same episodes: train and evaluate them, then put the figures side by side.

Everything done is recorded in the folders of the runs, so an interrupted comparison resumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import torch

from spanshot.errors import CheckpointError, ConfigError, DataError
from spanshot.evaluation.runs import ComparisonReport, ConfigReport, RunReport
from spanshot.files import write_text
from spanshot.formats.files import read_text
from spanshot.json_text import parse_json, to_json
from spanshot.research.checkpoint import new_method
from spanshot.research.experiments.measure import evaluation_file, measure, subject
from spanshot.research.training.events import Event, Finished
from spanshot.research.training.folder import check_settings, is_finished, read_result
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings, config_name
from spanshot.settings import Table

COMPARISON = "comparison.json"


@dataclass(frozen=True)
class PlannedRun:
    """One config with one seed, and the folder of its run."""

    name: str
    config: Path
    settings: RunSettings
    folder: Path

    @property
    def is_trained(self) -> bool:
        """Whether its training is finished."""
        return is_finished(self.folder)

    @property
    def result(self) -> Finished:
        """The outcome of its training."""
        result = read_result(self.folder)
        if result is None:
            raise CheckpointError(f"{self.folder}: the run is not finished")
        return result


Progress = Callable[[PlannedRun, int, int], None]
"""Called with a run, the number of its episodes evaluated so far, and the number of all."""


# Plan


def plan(
    configs: Sequence[Path], assignments: Sequence[str], folder: Path, seeds: Sequence[int] = ()
) -> list[PlannedRun]:
    """Plan a run for each config and seed (default: the config's own seed). Refuse configs that cannot be compared."""
    if seeds and any(assignment.partition("=")[0] == "seed" for assignment in assignments):
        raise ConfigError("seeds are given twice; give either --seeds or seed=...")
    for first, second in combinations(configs, 2):
        if first.resolve() == second.resolve():
            raise ConfigError(f"{second} is given twice; give each config once")
    all_settings = [RunSettings.read(config, assignments) for config in configs]
    if seeds:
        all_settings = [replace(settings, seed=seeds[0]) for settings in all_settings]
    _check_comparable(configs, all_settings)
    runs = [
        PlannedRun(name, config, replace(settings, seed=seed), folder / f"{name}-seed{seed}")
        for name, config, settings in zip(config_names(configs), configs, all_settings, strict=True)
        for seed in seeds or (settings.seed,)
    ]
    for run in runs:
        check_settings(run.settings, run.folder)
    return runs


def config_names(configs: Sequence[Path]) -> list[str]:
    """Return a name for each config. Configs with the same name are told apart by their folders."""
    plain = [config_name(config) for config in configs]
    frequency = Counter(plain)
    names = [
        name if frequency[name] == 1 else f"{config.resolve().parent.name}-{config.stem}"
        for name, config in zip(plain, configs, strict=True)
    ]
    for (first, name), (second, other) in combinations(zip(configs, names, strict=True), 2):
        if name == other:
            raise ConfigError(f"{first} and {second} have the same name {name}; rename one of them")
    return names


def _check_comparable(configs: Sequence[Path], all_settings: Sequence[RunSettings]) -> None:
    for config, settings in zip(configs, all_settings, strict=True):
        if not settings.train.steps:
            raise ConfigError(f"{config}: train.steps is 0, so there is no checkpoint to compare")
        if differences := _differences(all_settings[0].to_table()["data"], settings.to_table()["data"]):
            raise ConfigError(
                f"{configs[0]} and {config} use different episodes: {'; '.join(differences)} "
                "(KEY=VALUE sets a value for all configs)"
            )
    for (first, settings), (second, other) in combinations(zip(configs, all_settings, strict=True), 2):
        if settings == other:
            raise ConfigError(f"{first} and {second} have the same settings; give only one of them")


def _differences(data: Table, other: Table) -> list[str]:
    """Return the settings of [data] that differ; if the kind does, nothing else is compared."""
    keys = ["kind"] if data["kind"] != other["kind"] else list(data)
    return [f"data.{key} is {data[key]!r} and {other[key]!r}" for key in keys if data[key] != other[key]]


def check(runs: Sequence[PlannedRun], split: str) -> None:
    """Open everything that training needs, so that missing files are reported now and not hours later."""
    untrained = {run.name: run.settings for run in runs if not run.is_trained}
    if not untrained:
        return
    data = runs[0].settings.data
    data.training()
    for name in dict.fromkeys(("dev", split)):
        data.episodes(name)
    with torch.random.fork_rng():
        for settings in untrained.values():
            new_method(settings)


# Train and evaluate


def trainings(runs: Sequence[PlannedRun]) -> Iterator[tuple[PlannedRun, Iterator[Event]]]:
    """Yield each unfinished run with its events, which must be consumed before the next run."""
    for run in runs:
        if not run.is_trained:
            yield run, run_training(run.settings, run.folder)


def compare(runs: Sequence[PlannedRun], split: str, first: int, progress: Progress) -> ComparisonReport:
    """Return the figures of finished runs side by side, and record them in the folder above the runs."""
    reports = [evaluation(run, split, first, progress) for run in runs]
    _check_same_episodes(runs, reports, split, first)
    by_name: dict[str, list[tuple[PlannedRun, RunReport]]] = {}
    for run, report in zip(runs, reports, strict=True):
        by_name.setdefault(run.name, []).append((run, report))
    configs = [
        ConfigReport(
            name,
            str(pairs[0][0].config),
            pairs[0][0].settings.model.method_name,
            tuple(report for _, report in pairs),
        )
        for name, pairs in by_name.items()
    ]
    comparison = ComparisonReport(split, first, tuple(configs))
    write_text(runs[0].folder.parent / COMPARISON, [to_json(comparison.to_dict(), indent=2), "\n"])
    return comparison


def evaluation(run: PlannedRun, split: str, first: int, progress: Progress) -> RunReport:
    """Return the evaluation of a finished run: the recorded one, or a new one, which is then recorded."""
    report = recorded_evaluation(run, split, first)
    if report is None:
        report = measure(run.folder, split, (), first, lambda done, total: progress(run, done, total))
        record = to_json(report.to_dict(counts_of_episodes=True), indent=2)
        write_text(evaluation_file(run.folder, split, first), [record, "\n"])
    return report


def recorded_evaluation(run: PlannedRun, split: str, first: int) -> RunReport | None:
    """Return the evaluation in the run's folder if it is complete and of this checkpoint and split."""
    path = evaluation_file(run.folder, split, first)
    if not path.is_file():
        return None
    try:
        report = RunReport.from_dict(parse_json(read_text(path)))
    except DataError:
        return None
    result = run.result
    return report if report.subject == subject(run.settings, split, result.best_step, result.best_f1) else None


def _check_same_episodes(runs: Sequence[PlannedRun], reports: Sequence[RunReport], split: str, first: int) -> None:
    """Refuse reports on different episodes: the settings are equal, but a file may have changed in between."""
    for run, report in zip(runs, reports, strict=True):
        if report.digest != reports[0].digest:
            paths = [evaluation_file(folder, split, first) for folder in (runs[0].folder, run.folder)]
            raise ConfigError(
                f"{paths[0]} and {paths[1]} are about different episodes, although their settings are equal: the "
                "data has changed; remove the outdated file to evaluate again"
            )
