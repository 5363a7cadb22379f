"""Hyper-parameter search over the grids of the paper's appendix, on dev F1 (table 7 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from spanshot.json_text import Fields, JsonObject
from spanshot.research.experiments.reproduce import snips
from spanshot.research.experiments.reproduce.jobs import Count, Job, read_measurement
from spanshot.research.experiments.reproduce.results import Cell, Chart, Curve, Measured, Result, ResultTable
from spanshot.research.experiments.reproduce.snips_runs import WE, run
from spanshot.research.experiments.reproduce.study import ABANDONED, Study, Trial
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace
from spanshot.research.training.settings import RunSettings
from spanshot.settings import Table

GRID: dict[str, tuple[float, ...] | tuple[int, ...]] = {
    "train.head_rate": (5e-5, 1e-4, 3e-4, 5e-4),
    "method.dropout": (0.1, 0.3, 0.5),
    "train.encoder_rate": (5e-6, 1e-5, 2e-5, 3e-5, 5e-5),
    "method.size": (50, 100, 150, 200),
    "method.beam": (1, 3, 5, 7),
}
"""The paper's grids: learning rate, dropout, BERT's learning rate, span dimension, beam size."""
PAPER_CHOICE = {
    "train.head_rate": 5e-4,
    "method.dropout": 0.1,
    "train.encoder_rate": 5e-5,
    "method.size": 100,
    "method.beam": 5,
}
"""The paper's values on SNIPS. They are tried first."""
FOLD, SHOTS, SEED, RANK = WE, 1, 1, 7
TITLE = "Hyper-parameter search for ESD"


@dataclass(frozen=True)
class Budget:
    """Number of trials, steps of each, and evaluations on dev, after which bad trials are abandoned."""

    trials: int
    steps: int
    evaluations: int
    minutes: float


BUDGETS = {
    "small": Budget(trials=4, steps=6, evaluations=3, minutes=0.2),
    "laptop": Budget(trials=16, steps=300, evaluations=3, minutes=80),
    "paper": Budget(trials=100, steps=4500, evaluations=9, minutes=4000),
}


@dataclass(frozen=True)
class Search:
    """A study as a measurement. Its trials are runs in the folder of the job."""

    name: str
    table: JsonObject
    """Settings of the runs, before those of a trial."""
    trials: int

    def describe(self) -> JsonObject:
        """Return all fields."""
        grid: JsonObject = {key: list(values) for key, values in GRID.items()}
        return {"settings": self.table, "grid": grid, "trials": self.trials}

    def measure(self, folder: Path, count: Count) -> JsonObject:
        """Run the trials that are missing, and return all of them."""
        study = Study(folder, as_table(self.table), GRID, PAPER_CHOICE, SEED)
        return {"trials": [trial.to_dict() for trial in study.run(self.trials, count)]}

    def read(self, folder: Path) -> list[Trial]:
        """Return the recorded trials."""
        record = read_measurement(folder, self)
        return [] if record is None else [Trial.from_dict(item) for item in Fields.of(record).list("trials")]


def as_table(record: JsonObject) -> Table:
    """Return settings read from JSON as a table."""
    return dict(record)


def search(workspace: Workspace) -> tuple[Path, Search]:
    """Return the folder of the study, and the study."""
    budget = BUDGETS[workspace.budget]
    extra = (f"train.evaluate_every={budget.steps // budget.evaluations}", "train.keep=best", "method.refine=bsnms")
    settings = run(workspace, "ESD", FOLD, SHOTS, SEED, steps=budget.steps, extra=extra, name="search").settings
    assert isinstance(settings, RunSettings)
    return workspace.runs / "search", Search("study", settings.to_table(), budget.trials)


def jobs(workspace: Workspace) -> list[Job]:
    """Plan the study, as one job."""
    folder, item = search(workspace)
    return [Job(folder, None, (item,), minutes=BUDGETS[workspace.budget].minutes, rank=RANK)]


def result(workspace: Workspace) -> Result:
    """List all trials, the best first."""
    folder, item = search(workspace)
    trials = item.read(folder)
    ordered = sorted(trials, key=lambda trial: (trial.state == ABANDONED, -trial.f1))
    rows: dict[str, tuple[Cell | str, ...]] = {
        f"trial {trial.number}": (
            Cell(Measured(trial.f1)),
            trial.state,
            *(f"{trial.values[key]:g}" for key in GRID),
        )
        for trial in ordered
    }
    columns = ("dev F1", "state", *(key.partition(".")[2] for key in GRID))
    table = ResultTable('ESD on dev of "We", 1-shot', columns, rows, head="trial")
    settings = (
        f"{item.trials} trials of {BUDGETS[workspace.budget].steps} steps; a trial is abandoned if its dev F1 is below "
        "the median of the earlier ones after as many steps.",
        f"Command: spanshot reproduce search --budget {workspace.budget}",
    )
    return Result("search", TITLE, (table,), _charts(trials), tuple(_remarks(ordered)), settings)


def _charts(trials: Sequence[Trial]) -> tuple[Chart, ...]:
    """Plot the dev F1 of the trials in their order, and the best so far."""
    if not trials:
        return ()
    scores = [100 * trial.f1 for trial in trials]
    curves = (Curve("trial", tuple(scores)), Curve("best so far", tuple(accumulate(scores, max))))
    numbers = tuple(float(trial.number) for trial in trials)
    return (Chart("search", "Hyper-parameter search", "trial", "dev F1", numbers, curves),)


def _remarks(ordered: Sequence[Trial]) -> list[str]:
    if not ordered:
        return []
    best = ordered[0]
    values = ", ".join(f"{key}={best.values[key]:g}" for key in GRID)
    remarks = [f"Best dev F1 {100 * best.f1:.2f}: {values}."]
    paper = next((trial for trial in ordered if trial.values == PAPER_CHOICE), None)
    if paper is not None:
        remarks.append(f"The paper's values: dev F1 {100 * paper.f1:.2f} ({paper.state}).")
    return remarks


def prepare(workspace: Workspace) -> None:
    """Check that the files are there."""
    snips.prepare(workspace)


EXPERIMENT = Experiment("search", TITLE, prepare, jobs, result)
