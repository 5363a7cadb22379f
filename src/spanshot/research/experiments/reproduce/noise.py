"""Robustness: F1 as more of the support entities are mislabelled (appendix C of the paper)."""

from __future__ import annotations

from spanshot.evaluation.counts import Counts
from spanshot.research.experiments.reproduce import fewnerd
from spanshot.research.experiments.reproduce.curves import curve_chart, curve_table, most_stable
from spanshot.research.experiments.reproduce.episode_sets import noisy_episodes
from spanshot.research.experiments.reproduce.evaluations import EvaluationSeries
from spanshot.research.experiments.reproduce.jobs import Job
from spanshot.research.experiments.reproduce.methods import MAIN, METHODS
from spanshot.research.experiments.reproduce.results import Result
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace

SPLIT, SETTING = "intra", (5, 5)
RATIOS = {"small": (0.0, 0.2, 0.4), "laptop": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), "paper": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)}
"""Shares of mislabelled entities (r_noise in the paper)."""
EPISODES = {"small": 2, "laptop": 100, "paper": 1000}
SEED, RANK = 1, 3
TITLE = "Noise: mislabelled support entities"


def prepare(workspace: Workspace) -> None:
    """Check the data of Few-NERD, and write the noisy episodes."""
    fewnerd.prepare(workspace)
    evaluation(workspace, "ESD")


def evaluation(workspace: Workspace, method: str) -> EvaluationSeries:
    """Return the measurement at all ratios. The O bias is tuned on dev episodes without noise."""
    source = fewnerd.episodes(workspace, SPLIT, "test", *SETTING)
    count = EPISODES[workspace.budget]
    ratios = RATIOS[workspace.budget]
    entry = METHODS[method]
    return EvaluationSeries(
        "noise" + (f"-{method.lower()}" if entry.assignments else ""),
        tuple((f"{ratio:g}", noisy_episodes(workspace, source, ratio, count)) for ratio in ratios),
        fewnerd.episodes(workspace, SPLIT, "dev", *SETTING),
        entry.assignments,
    )


def jobs(workspace: Workspace) -> list[Job]:
    """Plan the evaluations of the models of Few-NERD's table."""
    return [
        fewnerd.run(workspace, method, SPLIT, SETTING, SEED, [evaluation(workspace, method)], RANK) for method in MAIN
    ]


def result(workspace: Workspace) -> Result:
    """Collect the curves of all methods that are measured."""
    ratios = RATIOS[workspace.budget]
    points: dict[str, list[tuple[Counts, ...]]] = {}
    for method in MAIN:
        reports = evaluation(workspace, method).read(fewnerd.run(workspace, method, SPLIT, SETTING, SEED, []).folder)
        if reports is not None:
            points[method] = [run.report.episodes for run in reports.values()]
    where = f"at r = {ratios[-1]:g}"
    charts = (curve_chart("noise", "Mislabelled support entities", "share mislabelled (r)", ratios, points),)
    remark = most_stable(points, where)
    settings = (
        f"Models of `spanshot reproduce fewnerd`, seed {SEED}, on {fewnerd.split_title(workspace, SPLIT)}; "
        f"{EPISODES[workspace.budget]} test episodes; error bands are 95 % bootstrap intervals.",
        "The paper has a figure without numbers here.",
        f"Command: spanshot reproduce noise --budget {workspace.budget}",
    )
    title = f"Mislabelled support entities, Few-NERD {fewnerd.split_title(workspace, SPLIT)}, 5-way 5~10-shot"
    table = curve_table(title, ratios, points)
    return Result("noise", TITLE, (table,), charts if points else (), (remark,) if remark else (), settings)


EXPERIMENT = Experiment("noise", TITLE, prepare, jobs, result)
