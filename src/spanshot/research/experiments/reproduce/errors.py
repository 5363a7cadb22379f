"""Error analysis: wrong spans and wrong types on INTER, 5-way 1~2-shot (table 6 of the paper)."""

from __future__ import annotations

from spanshot.evaluation.counts import Counts
from spanshot.research.experiments.reproduce import fewnerd
from spanshot.research.experiments.reproduce.jobs import Job
from spanshot.research.experiments.reproduce.methods import MAIN
from spanshot.research.experiments.reproduce.ranking import ranking_remark
from spanshot.research.experiments.reproduce.results import Cell, Measured, Result, ResultTable, f1_cell
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace

SPLIT, SETTING = "inter", (5, 1)
PAPER = {
    "ESD": (59.29, 9.4, 72.8, 27.2),
    "ProtoBERT": (38.83, 30.4, 86.7, 13.3),
    "NNShot": (47.24, 21.7, 84.7, 15.3),
    "StructShot": (51.88, 14.5, 80.0, 20.0),
}
"""F1, wrong predictions in thousands, shares of FP-Span and FP-Type in percent."""
COLUMNS = ("F1", "wrong, per 100 entities", "FP-Span %", "FP-Type %")
TITLE = "Error analysis on Few-NERD INTER, 5-way 1~2-shot"


def prepare(workspace: Workspace) -> None:
    """Check the data of Few-NERD."""
    fewnerd.prepare(workspace)


def jobs(workspace: Workspace) -> list[Job]:
    """Plan the trainings of Few-NERD's table that serve this setting."""
    return [
        fewnerd.run(workspace, method, SPLIT, SETTING, seed, [fewnerd.evaluation(workspace, method, SPLIT, *SETTING)])
        for seed in fewnerd.BUDGETS[workspace.budget].seeds
        for method in MAIN
    ]


def result(workspace: Workspace) -> Result:
    """Count the wrong predictions of each method."""
    rows: dict[str, tuple[Cell | str, ...]] = {}
    shares: dict[str, float | None] = {}
    for method in MAIN:
        reports = fewnerd.reports(workspace, method, SPLIT, SETTING)
        totals = [run.report.total for run in reports]
        f1, _, span, kind = PAPER[method]
        share = Measured.over([_share(total) for total in totals])
        shares[method] = share.mean if share else None
        rows[method] = (
            f1_cell(reports, f1),
            Cell(Measured.over([total.fp / max(1, total.tp + total.fn) for total in totals]), decimals=1),
            Cell(share, span, decimals=1),
            Cell(Measured.over([1 - _share(total) for total in totals]), kind, decimals=1),
        )
    note = (
        "FP-Span: predictions whose boundaries match no gold entity; FP-Type: right boundaries, wrong label. The paper "
        "counts 9.4k (ESD), 30.4k (ProtoBERT), 21.7k (NNShot) and 14.5k (StructShot) wrong predictions on its 5,000 "
        "episodes; ours are per 100 gold entities, since there are fewer episodes here."
    )
    remark = ranking_remark("Share of FP-Span", shares, {method: PAPER[method][2] for method in MAIN})
    settings = (
        "The models and episodes of `spanshot reproduce fewnerd`.",
        f"Command: spanshot reproduce errors --budget {workspace.budget}",
    )
    table = ResultTable(TITLE, COLUMNS, rows, note)
    return Result("errors", TITLE, (table,), (), (remark,) if remark else (), settings)


def _share(total: Counts) -> float:
    return total.fp_span / total.fp if total.fp else 0.0


EXPERIMENT = Experiment("errors", TITLE, prepare, jobs, result)
