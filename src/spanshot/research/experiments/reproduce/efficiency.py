"""Efficiency: parameters and time per task on "We", support set included (table 5 of the paper)."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from spanshot.json_text import Fields, JsonObject, JsonValue
from spanshot.research import checkpoint
from spanshot.research.corpora.episode_files import read_episodes
from spanshot.research.corpora.snips import snips_file
from spanshot.research.experiments.reproduce import snips
from spanshot.research.experiments.reproduce.jobs import Count, Job, read_measurement
from spanshot.research.experiments.reproduce.results import Cell, Measured, Result, ResultTable
from spanshot.research.experiments.reproduce.snips_runs import SHOTS, WE, run, run_folder
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace
from spanshot.research.methods import Method

COMPARED = ("ESD", "ProtoBERT", "L-TapNet+CDT")
BASE = "ProtoBERT"
TASKS = {"small": 4, "laptop": 200, "paper": 1000}
PAPER = {"ESD": (112, 8.53, 18.47), "ProtoBERT": (110, 3.13, 5.27), "L-TapNet+CDT": (110, 24.67, 54.19)}
"""Million parameters, milliseconds per task at 1-shot and at 5-shot, on a GPU with BERT-base."""
FOLD, SEED, RANK = WE, 1, 4
TITLE = "Efficiency: parameters and time per task"


@dataclass(frozen=True)
class Timing:
    """Times methods in turn on the same tasks: learn a support set, then tag one sentence."""

    name: str
    runs: tuple[tuple[str, Path], ...]
    episodes: Path
    tasks: int

    def describe(self) -> JsonObject:
        """Return all fields."""
        runs: JsonObject = {name: str(path) for name, path in self.runs}
        return {"runs": runs, "episodes": str(self.episodes), "tasks": self.tasks}

    def measure(self, folder: Path, count: Count) -> JsonObject:  # noqa: ARG002
        """Return the number of parameters and the median time per task of each method."""
        methods = {name: checkpoint.load(path).method for name, path in self.runs}
        seconds: dict[str, list[float]] = {name: [] for name in methods}
        tasks = (
            replace(episode, query=(sentence,))
            for episode in read_episodes(self.episodes)
            for sentence in episode.query
        )
        for number, task in enumerate(islice(tasks, self.tasks + 1)):
            for name, method in methods.items():
                started = time.perf_counter()
                method.fit(task.support)(task.query)
                if number:  # the first task warms up
                    seconds[name].append(time.perf_counter() - started)
            count(number, self.tasks)
        outcome: dict[str, JsonValue] = {
            name: {"parameters": _parameters(method), "seconds": statistics.median(seconds[name])}
            for name, method in methods.items()
        }
        return {**outcome, "threads": torch.get_num_threads()}


def _parameters(method: Method) -> int:
    return sum(weight.numel() for weight in method.parameters())


def timing(workspace: Workspace, shots: int) -> tuple[Path, Timing]:
    """Return the folder of the measurement, and the measurement."""
    runs = tuple((method, run_folder(workspace, method, FOLD, shots, SEED)) for method in COMPARED)
    episodes = snips_file(workspace.data / "snips", FOLD, shots, "test")
    return workspace.runs / f"efficiency-{shots}shot", Timing("timing", runs, episodes, TASKS[workspace.budget])


def jobs(workspace: Workspace) -> list[Job]:
    """Plan the trainings of the three methods, and the timings after everything else."""
    planned = []
    for shots in SHOTS:
        folder, item = timing(workspace, shots)
        missing = read_measurement(folder, item) is None
        trainings = [run(workspace, method, FOLD, shots, SEED, rank=RANK) for method in COMPARED]
        planned += [replace(job, needs_weights=missing) for job in trainings]
        planned.append(Job(folder, None, (item,), minutes=0.05 * TASKS[workspace.budget] / 10, rank=RANK, alone=True))
    return planned


def result(workspace: Workspace) -> Result:
    """Collect both timings, as ratios to ProtoBERT."""
    measurements = {shots: read_measurement(*timing(workspace, shots)) for shots in SHOTS}
    rows: dict[str, tuple[Cell | str, ...]] = {}
    for method in COMPARED:
        millions, *paper = PAPER[method]
        cells: list[Cell] = []
        size: Measured | None = None
        for shots, published in zip(SHOTS, paper, strict=True):
            ours, ratio = None, None
            if (record := measurements[shots]) is not None:
                fields = Fields.of(record).object(method)
                base = Fields.of(record).object(BASE).number("seconds")
                size = Measured(fields.number("parameters"))
                ours, ratio = Measured(fields.number("seconds")), Measured(fields.number("seconds") / base)
            cells.append(Cell(ours, published, scale=1000))
            cells.append(Cell(ratio, published / PAPER[BASE][1 if shots == 1 else 2], scale=1))
        rows[method] = (Cell(size, millions, scale=1e-6, decimals=1), *cells)
    columns = ("parameters, M", "1-shot, ms", "1-shot, ratio", "5-shot, ms", "5-shot, ratio")
    note = "A task is a support set and one query sentence. Medians; methods take turns. Ratios are to ProtoBERT."
    tables = (ResultTable('Domain "We" of SNIPS', columns, rows, note, is_timed=True),)
    settings = (
        f"The models of `spanshot reproduce snips`, seed {SEED}; {TASKS[workspace.budget]} tasks. Run it on an idle "
        "machine: the timings come last, beside no other job.",
        f"Command: spanshot reproduce efficiency --budget {workspace.budget}",
    )
    return Result("efficiency", TITLE, tables, (), (), settings)


EXPERIMENT = Experiment("efficiency", TITLE, snips.prepare, jobs, result)
