"""Reproduce experiments: prepare their data, work through their jobs, write their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from spanshot.errors import ConfigError
from spanshot.locks import locked
from spanshot.research.experiments.reproduce.generated import write_generated_data
from spanshot.research.experiments.reproduce.jobs import DONE, Job, Progress, Watch, merged
from spanshot.research.experiments.reproduce.records import Records
from spanshot.research.experiments.reproduce.report import write_results
from spanshot.research.experiments.reproduce.results import Result
from spanshot.research.experiments.reproduce.scheduling import work_through
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.training.folder import read_result

LOCK = "lock"


def reproduce(
    experiments: Sequence[Experiment],
    workspace: Workspace,
    processes: int,
    begin: Callable[[Sequence[Job]], Watch],
    *,
    only_tables: bool = False,
    records: Path | None = None,
) -> list[Result]:
    """Run unfinished jobs, write all results to ``workspace.out``, and return them.

    ``begin`` is called with all jobs before the first one starts, and returns a callback for their progress. After an
    interrupt, the results of the finished runs are still written. Runs in the file ``records`` count as finished;
    finished runs are added to it.
    """
    workspace.out.mkdir(parents=True, exist_ok=True)
    if only_tables:  # reads finished runs only, so another process may work on the rest
        return _reproduce(experiments, workspace, processes, begin, only_tables, records)
    try:
        with locked(workspace.out / LOCK, timeout=0):
            return _reproduce(experiments, workspace, processes, begin, only_tables, records)
    except TimeoutError:
        raise ConfigError(f"{workspace.out} is in use by another `spanshot reproduce`; wait for it to end") from None


def _reproduce(
    experiments: Sequence[Experiment],
    workspace: Workspace,
    processes: int,
    begin: Callable[[Sequence[Job]], Watch],
    only_tables: bool,
    records_file: Path | None,
) -> list[Result]:
    if workspace.budget == "small":
        write_generated_data(workspace.data)
    for experiment in experiments:
        experiment.prepare(workspace)
    jobs = plan(experiments, workspace)
    records = Records(records_file, workspace) if records_file else None
    if records:
        records.restore(jobs)
        jobs = plan(experiments, workspace)  # which weights are needed depends on what is left to do
    try:
        if not only_tables:
            _check(jobs)
            work_through(jobs, processes, _saving(begin(jobs), jobs, records))
    finally:
        if records:
            records.save(jobs)
        results = [_result(experiment, workspace) for experiment in experiments]
        write_results(results, workspace.out)
    return results


def _saving(watch: Watch, jobs: Sequence[Job], records: Records | None) -> Watch:
    """Return a callback that also saves the records whenever a job is done, in case this process is killed later."""

    def watch_and_save(progress: Progress) -> None:
        watch(progress)
        if records and progress.activity == DONE:
            records.save(jobs)

    return watch_and_save


def plan(experiments: Sequence[Experiment], workspace: Workspace) -> list[Job]:
    """Return the jobs of all experiments in the order in which they run."""
    return merged(job for experiment in experiments for job in experiment.jobs(workspace))


def _check(jobs: Sequence[Job]) -> None:
    """Open everything that training needs, so that missing files are reported now and not hours later."""
    settings = [job.settings for job in jobs if job.settings is not None and not job.is_done]
    for job in jobs:
        job.check()
    for encoder in sorted({run_settings.model.encoder.name for run_settings in settings}):
        load_pretrained(encoder)
    for data in {run_settings.data for run_settings in settings}:
        data.episodes("dev")


def _result(experiment: Experiment, workspace: Workspace) -> Result:
    """Return the result of an experiment, with the number of missing runs and the time that training took."""
    result = experiment.result(workspace)
    jobs = merged(experiment.jobs(workspace))
    missing = [job.name for job in jobs if not job.is_done]
    finished = [outcome for job in jobs if (outcome := read_result(job.folder)) is not None]
    hours = sum(outcome.seconds for outcome in finished) / 3600
    took = f"Training took {hours:.2f} h in {len(finished)} finished run{'' if len(finished) == 1 else 's'}."
    result = replace(result, settings=(*result.settings, took))
    if not missing:
        return result
    names = ", ".join(missing[:5]) + (", \u2026" if len(missing) > 5 else "")
    remark = f"{len(jobs) - len(missing)} of {len(jobs)} runs are finished; missing: {names}."
    return replace(result, remarks=(remark, *result.remarks))
