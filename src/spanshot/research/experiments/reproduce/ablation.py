"""The ablation: ESD without one of its parts, on the dev episodes of "We" at 1-shot (table 3 of the paper).

A second table compares the variants of ESD's heads and of Beam Soft-NMS's start on the dev sets of folds 1 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

from spanshot.evaluation.report import Report
from spanshot.research.corpora.snips import DOMAINS, snips_file
from spanshot.research.experiments.reproduce.evaluations import Evaluation, reports_of
from spanshot.research.experiments.reproduce.jobs import Job
from spanshot.research.experiments.reproduce.ranking import difference_remarks
from spanshot.research.experiments.reproduce.results import Cell, Chart, Curve, Result, ResultTable, f1_cell
from spanshot.research.experiments.reproduce.snips_runs import run
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace

FOLD, SHOTS = 1, 1
VARIANT_RANK, RANK = -1, 0  # the variants justify the settings of all other runs


@dataclass(frozen=True)
class Budget:
    """The runs of one budget. They are on 1-shot episodes only."""

    seeds: tuple[int, ...]
    """Seeds of the rows; variants have the first."""
    steps: int
    """Training steps."""
    variant_folds: tuple[int, ...]
    minutes: float
    """Expected core-minutes of a run."""
    settings: tuple[str, ...] = ()
    """Settings of every run that differ from those of SNIPS."""


BUDGETS = {
    "small": Budget(seeds=(1, 2), steps=8, variant_folds=(1,), minutes=0.04),
    "laptop": Budget(
        seeds=(1, 2, 3), steps=800, variant_folds=(1, 5), minutes=5.0, settings=("train.encoder_rate=1e-4",)
    ),
    "paper": Budget(seeds=(1, 2, 3), steps=4500, variant_folds=(1, 5), minutes=40.0),
}


@dataclass(frozen=True)
class Row:
    """A row of the table: settings to train with, or to evaluate the full model with."""

    name: str
    """Name in run folders."""
    paper: float
    paper_deviation: float
    train: tuple[str, ...] = ()
    evaluate: tuple[str, ...] = ()


FULL = "ESD"
ROWS = {
    FULL: Row("esd", 61.7, 1.3),
    "without intra span attention (ISA)": Row("esd-no-isa", 61.0, 0.4, ("method.isa=false",)),
    "without cross span attention (CSA)": Row("esd-no-csa", 59.1, 1.1, ("method.csa=false",)),
    "without instance span attention (INSA)": Row("esd-no-insa", 58.2, 1.3, ("method.insa=false",)),
    "without O partition (OP)": Row("esd-no-op", 60.6, 1.3, ("method.o_partition=false",)),
    "without Beam Soft-NMS (BSNMS)": Row("esd", 57.3, 1.4, (), ("method.refine=none",)),
}
VARIANTS = {
    "ours": Row("esd", 0, 0),
    "the paper's equations": Row(
        "esd-paper",
        0,
        0,
        (
            "method.span_head=linear",
            "method.attention=plain",
            "method.feed_width=4",
            "method.identity_start=false",
            "method.distance=euclidean",
            "method.scaled=false",
        ),
    ),
    "the released code": Row(
        "esd-released",
        0,
        0,
        (
            "method.vector_dropout=0.5",
            "method.span_head=wide",
            "method.attention=released",
            "method.feed_width=4",
            "method.identity_start=false",
            "method.similarity=tanh",
            "method.scaled=false",
            "method.beam_starts=1",
        ),
    ),
    "ours, attention that starts at random": Row("esd-random-start", 0, 0, ("method.identity_start=false",)),
    "ours, a hidden layer in the span head": Row("esd-narrow", 0, 0, ("method.span_head=narrow",)),
    "ours, dropout 0.5 on word vectors": Row("esd-dropout", 0, 0, ("method.vector_dropout=0.5",)),
    "ours, Beam Soft-NMS from the best span": Row("esd", 0, 0, (), ("method.beam_starts=1",)),
    "ours, greedy (the default)": Row("esd", 0, 0, (), ("method.refine=greedy",)),
}
"""Settings of esd-paper.toml and esd-released.toml, and ways to choose among overlapping spans."""
CHECKED = (
    "Checked for rows of another sign: every part is tested against the paper's equations; a removed part has no "
    "weights left; the O bias of each row is tuned on the same dev episodes."
)


def evaluation(workspace: Workspace, row: Row, fold: int) -> Evaluation:
    """Return the measurement of a row on the dev episodes, with the O bias tuned on them."""
    dev = snips_file(workspace.data / "snips", fold, SHOTS, "valid")
    name = "-".join(["dev", *(setting.partition("=")[2] for setting in row.evaluate)])
    if row.evaluate == ("method.beam_starts=1",):
        name = "dev-one-start"
    return Evaluation(name, split="dev", tune_on=dev, assignments=row.evaluate)


def prepare(workspace: Workspace) -> None:
    """Check that the files are there."""
    for fold in BUDGETS[workspace.budget].variant_folds:
        for split in ("train", "valid"):
            snips_file(workspace.data / "snips", fold, SHOTS, split)


def _run(workspace: Workspace, row: Row, fold: int, seed: int, rank: int) -> Job:
    budget, name = BUDGETS[workspace.budget], f"ablation-{row.name}"
    item = evaluation(workspace, row, fold)
    extra = ("method.refine=bsnms", *budget.settings, *row.train)
    job = run(workspace, "ESD", fold, SHOTS, seed, [item], steps=budget.steps, extra=extra, name=name, rank=rank)
    return replace(job, minutes=budget.minutes)


def jobs(workspace: Workspace) -> list[Job]:
    """Plan all rows for all seeds, then the variants for the first seed."""
    budget = BUDGETS[workspace.budget]
    planned = [_run(workspace, row, FOLD, seed, RANK) for seed in budget.seeds for row in ROWS.values()]
    for fold in budget.variant_folds:
        planned += [_run(workspace, row, fold, budget.seeds[0], VARIANT_RANK) for row in VARIANTS.values()]
    return planned


def result(workspace: Workspace) -> Result:
    """Collect the rows and compare the signs of their differences with the paper's."""
    budget = BUDGETS[workspace.budget]
    reports = {
        name: reports_of(
            [(_run(workspace, row, FOLD, seed, RANK).folder, evaluation(workspace, row, FOLD)) for seed in budget.seeds]
        )
        for name, row in ROWS.items()
    }
    cells = {name: f1_cell(reports[name], row.paper, row.paper_deviation) for name, row in ROWS.items()}
    remarks = _signs(cells)
    by_name = {name: [run.report for run in runs] for name, runs in reports.items() if runs}
    remarks += difference_remarks("Dev of We, 1-shot", FULL, by_name, "mean_f1")
    rows: dict[str, tuple[Cell | str, ...]] = {
        name: (
            cells[name],
            _precision_and_recall([run.report for run in runs]),
            _precision_and_recall([run.without_o_bias for run in runs if run.without_o_bias]),
        )
        for name, runs in reports.items()
    }
    columns = ("F1", "P / R", "P / R, no O bias")
    table = ResultTable('Dev episodes of "We", 1-shot, mean F1', columns, rows, head="model")
    tables = (table, _variants(workspace))
    settings = (
        f"Seeds: {', '.join(map(str, budget.seeds))}. {budget.steps:,} steps. Other settings as in the table on SNIPS"
        + (f", but {', '.join(budget.settings)}." if budget.settings else "."),
        "All with Beam Soft-NMS, unless stated otherwise.",
        "Without Beam Soft-NMS: the weights of the full model, and every span that is more probable than O.",
        f"Command: spanshot reproduce ablation --budget {workspace.budget}",
    )
    return Result("ablation", TITLE, tables, _charts(cells), tuple(remarks), settings)


def _signs(cells: dict[str, Cell]) -> list[str]:
    """Compare the sign of each difference to the full model with the paper's."""
    full = cells[FULL].ours
    if full is None:
        return []
    same: list[str] = []
    other: list[str] = []
    for name, cell in cells.items():
        if name != FULL and cell.ours is not None:
            (same if cell.ours.mean < full.mean else other).append(name)
    remarks = [f"As in the paper, F1 falls {', '.join(same)}."] if same else []
    if other:
        remarks += [f"Unlike in the paper, F1 does not fall {', '.join(other)}.", CHECKED]
    return remarks


def _variants(workspace: Workspace) -> ResultTable:
    budget = BUDGETS[workspace.budget]
    folds, seed = budget.variant_folds, budget.seeds[0]
    rows: dict[str, tuple[Cell | str, ...]] = {}
    for name, row in VARIANTS.items():
        cells = []
        for fold in folds:
            folder = _run(workspace, row, fold, seed, VARIANT_RANK).folder
            cells.append(f1_cell(reports_of([(folder, evaluation(workspace, row, fold))])))
        rows[name] = tuple(cells)
    titles = tuple(f"dev of {DOMAINS[fold - 1]}" for fold in folds)
    return ResultTable(f"Variants of ESD, 1-shot dev episodes, mean F1, seed {seed}", titles, rows, head="variant")


def _precision_and_recall(reports: Sequence[Report]) -> str:
    """Return precision and recall in percent, as means over seeds."""
    if not reports:
        return "\u2013"
    precision = mean(report.precision for report in reports)
    recall = mean(report.recall for report in reports)
    return f"{100 * precision:.1f} / {100 * recall:.1f}"


def _charts(cells: dict[str, Cell]) -> tuple[Chart, ...]:
    measured = {name: cell for name, cell in cells.items() if cell.ours is not None}
    if len(measured) < 2:
        return ()
    names = tuple(name.removeprefix("without ").rpartition("(")[2].rstrip(")") for name in measured)
    ours = Curve(
        "here",
        tuple(100 * cell.ours.mean for cell in measured.values() if cell.ours),
        tuple(100 * (cell.ours.deviation or 0.0) for cell in measured.values() if cell.ours),
    )
    paper = Curve(
        "paper",
        tuple(cell.paper or 0.0 for cell in measured.values()),
        tuple(cell.paper_deviation or 0.0 for cell in measured.values()),
    )
    xs = tuple("ESD" if name == FULL else f"\u2212 {name}" for name in names)
    return (Chart("ablation", "ESD without one part", "", "mean F1 ± deviation", xs, (ours, paper)),)


TITLE = "Ablation of ESD"
EXPERIMENT = Experiment("ablation", TITLE, prepare, jobs, result)
