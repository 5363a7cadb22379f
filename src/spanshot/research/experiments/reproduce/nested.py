"""FewNERD-nested: F1 as more of the episodes have nested entities (figure 4 of the paper)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from spanshot.evaluation.counts import Counts
from spanshot.research.experiments.reproduce import fewnerd
from spanshot.research.experiments.reproduce.curves import curve_chart, curve_table, most_stable
from spanshot.research.experiments.reproduce.episode_sets import nested_episodes
from spanshot.research.experiments.reproduce.evaluations import EvaluationSeries
from spanshot.research.experiments.reproduce.jobs import Job
from spanshot.research.experiments.reproduce.methods import MAIN, METHODS
from spanshot.research.experiments.reproduce.postprocessing_grid import PostprocessingGrid
from spanshot.research.experiments.reproduce.results import Result
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace

SPLIT, SETTING = "intra", (5, 5)
RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of episodes from GENIA (r_nested in the paper)."""
EPISODES = {"small": {"dev": 2, "test": 3}, "laptop": {"dev": 60, "test": 150}, "paper": {"dev": 1000, "test": 2000}}
"""Episodes with nested entities."""
GRID = {
    "small": (0.1, 0.5, 0.9),
    "laptop": tuple(number / 10 for number in range(1, 10)),
    "paper": tuple(number / 10 for number in range(1, 10)),
}
"""Values of k, u and δ: the appendix of the paper has 0.1 to 0.9."""
SEED, RANK = 1, 3
TITLE = "FewNERD-nested: episodes with nested entities"


def prepare(workspace: Workspace) -> None:
    """Check the data of Few-NERD and GENIA, and draw the episodes with nested entities."""
    fewnerd.prepare(workspace)
    grid(workspace)


def grid(workspace: Workspace) -> PostprocessingGrid:
    """Return the measurement of ESD: k, u and δ tuned on dev, then all resolvers on test."""
    counts = EPISODES[workspace.budget]
    return PostprocessingGrid(
        "nested",
        dev=nested_episodes(workspace, "dev", counts["dev"]),
        test=nested_episodes(workspace, "test", counts["test"]),
        flat=fewnerd.episodes(workspace, SPLIT, "test", *SETTING),
        tune_on=fewnerd.episodes(workspace, SPLIT, "dev", *SETTING),
        values=GRID[workspace.budget],
    )


def series(workspace: Workspace, method: str) -> EvaluationSeries:
    """Return the measurement of a method that cannot find nested entities."""
    space, entry = grid(workspace), METHODS[method]
    name = "nested" + (f"-{method.lower()}" if entry.assignments else "")
    return EvaluationSeries(name, (("test", space.test), ("flat", space.flat)), space.tune_on, entry.assignments)


def jobs(workspace: Workspace) -> list[Job]:
    """Plan the measurements of the models of Few-NERD's table."""
    return [
        fewnerd.run(
            workspace,
            method,
            SPLIT,
            SETTING,
            SEED,
            [grid(workspace) if method == "ESD" else series(workspace, method)],
            RANK,
        )
        for method in MAIN
    ]


def mixture(nested: Sequence[Counts], flat: Sequence[Counts], ratio: float) -> list[Counts]:
    """Return the counts of a set of episodes of which a share is nested.

    Episode i is the i-th nested or the i-th flat one. The nested ones of a ratio are among those of a higher ratio.
    """
    size = min(len(nested), len(flat))
    order = random.Random(SEED).sample(range(size), size)
    chosen = set(order[: round(ratio * size)])
    return [nested[at] if at in chosen else flat[at] for at in range(size)]


def result(workspace: Workspace) -> Result:
    """Collect the curves of all methods that are measured."""
    points: dict[str, list[list[Counts]]] = {}
    for method in MAIN:
        folder = fewnerd.run(workspace, method, SPLIT, SETTING, SEED, []).folder
        if method == "ESD":
            outcome = grid(workspace).read(folder)
            pair = None if outcome is None else (outcome.test["bsnms"], outcome.flat)
        else:
            reports = series(workspace, method).read(folder)
            pair = None if reports is None else (reports["test"].report, reports["flat"].report)
        if pair is not None:
            points[method] = [mixture(pair[0].episodes, pair[1].episodes, ratio) for ratio in RATIOS]
    charts = (curve_chart("nested", "Episodes with nested entities", "share of nested episodes (r)", RATIOS, points),)
    remark = most_stable(points, "at r = 1")
    dev = "ACE05" if (workspace.data / "ace05").is_dir() else "GENIA dev"
    settings = (
        f"Models of `spanshot reproduce fewnerd`, seed {SEED}. Flat episodes: {fewnerd.split_title(workspace, SPLIT)} "
        "test; nested ones: GENIA, support sentences without nesting, ten nested query sentences each.",
        f"ESD's k, u and δ are tuned on {dev}, and used for flat episodes as well; O biases are tuned on the dev "
        "episodes of Few-NERD.",
        "Error bands are 95 % bootstrap intervals. The paper has a figure without numbers here.",
        f"Command: spanshot reproduce nested --budget {workspace.budget}",
    )
    table = curve_table(TITLE, RATIOS, points)
    return Result("nested", TITLE, (table,), charts if points else (), (remark,) if remark else (), settings)


EXPERIMENT = Experiment("nested", TITLE, prepare, jobs, result)
