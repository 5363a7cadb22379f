"""Post-processing of ESD on episodes that all have nested entities (table 4 of the paper)."""

from __future__ import annotations

from spanshot.research.experiments.reproduce import fewnerd, nested
from spanshot.research.experiments.reproduce.jobs import Job
from spanshot.research.experiments.reproduce.ranking import difference_remarks, ranking_remark
from spanshot.research.experiments.reproduce.results import Cell, Result, ResultTable, mean_of
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace

ROWS = {
    "Beam Soft-NMS": ("bsnms", 31.25),
    "Soft-NMS": ("soft_nms", 31.09),
    "beam search": ("beam", 28.94),
    "no post-processing": ("none", 30.34),
}
"""Name of the resolver, and F1 in the paper, which tuned k, δ and u to 0.1, 0.1 and 0.4."""
TITLE = "Post-processing with nested entities, r = 1"


def jobs(workspace: Workspace) -> list[Job]:
    """Plan the measurement of ESD in the nested experiment."""
    items = [nested.grid(workspace)]
    return [fewnerd.run(workspace, "ESD", nested.SPLIT, nested.SETTING, nested.SEED, items, nested.RANK)]


def result(workspace: Workspace) -> Result:
    """Collect F1 of all ways, and the tuned settings."""
    (job,) = jobs(workspace)
    results = nested.grid(workspace).read(job.folder)
    reports = {} if results is None else {name: [results.test[key]] for name, (key, _) in ROWS.items()}
    rows: dict[str, tuple[Cell | str, ...]] = {}
    for name, (key, paper) in ROWS.items():
        tuned = results.tuned.get(key) if results else None
        values = "{overlap:g}, {threshold:g}, {decay:g}".format(**tuned) if tuned else ""
        rows[name] = (Cell(mean_of(reports.get(name, []), "micro_f1"), paper), values)
    table = ResultTable("ESD on GENIA episodes, micro F1", ("F1", "k, δ, u"), rows, head="post-processing")
    ours = {name: runs[0].f1("micro_f1") for name, runs in reports.items()}
    remark = ranking_remark("Post-processing", dict(ours), {name: paper for name, (_, paper) in ROWS.items()})
    remarks = [remark, *difference_remarks("Nested", "Beam Soft-NMS", reports, "micro_f1")] if results else []
    settings = (
        f"The model and episodes of `spanshot reproduce nested`; k, u and δ from a grid of "
        f"{len(nested.GRID[workspace.budget])}³ settings.",
        f"Command: spanshot reproduce postprocessing --budget {workspace.budget}",
    )
    return Result("postprocessing", TITLE, (table,), (), tuple(remarks), settings)


EXPERIMENT = Experiment("postprocessing", TITLE, nested.prepare, jobs, result)
