"""Few-NERD: INTRA and INTER, 5 and 10 ways, 1~2 and 5~10 shots (table 1 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spanshot.errors import DataError
from spanshot.evaluation.runs import RunReport
from spanshot.research.experiments.reproduce.episode_sets import fewnerd_episodes, fewnerd_folder
from spanshot.research.experiments.reproduce.evaluations import Evaluation, reports_of
from spanshot.research.experiments.reproduce.jobs import Job, Measurement
from spanshot.research.experiments.reproduce.methods import MAIN, METHODS
from spanshot.research.experiments.reproduce.ranking import column_rankings, difference_table, differs
from spanshot.research.experiments.reproduce.results import (
    Cell,
    Chart,
    Curve,
    Measured,
    Result,
    ResultTable,
    f1_cell,
)
from spanshot.research.experiments.reproduce.workspace import Experiment, Workspace
from spanshot.settings import Table

SPLITS = ("intra", "inter")  # the models of INTRA serve three other tables as well, so they come first
SETTINGS = ((5, 1), (10, 1), (5, 5), (10, 5))  # ways and shots, in the order of the paper
RANK = 2
LEAST_WAYS = {("inter", "esd"): 5}
"""Labels of a training episode by split and config, where episodes of fewer are worse on dev (docs/lab-log.md)."""


@dataclass(frozen=True)
class Budget:
    """The runs and measurements of one budget."""

    seeds: tuple[int, ...]
    settings: tuple[str, ...]
    """Settings of every run."""
    steps: dict[str, int]
    """Training steps by split."""
    evaluations: int
    """Evaluations on dev, of which the best weights are kept."""
    mixed: bool
    """Train once per split, on episodes of mixed ways and shots; otherwise once for each of the four settings."""
    test: dict[tuple[int, int], int]
    """Test episodes of each setting: the first N of a given file, or N drawn ones."""
    dev: dict[tuple[int, int], int]
    """Dev episodes to draw where there is no file."""
    minutes: float


BUDGETS = {
    "small": Budget(
        seeds=(1,),
        settings=("train.batch=1", "train.dev_episodes=2", "train.encoder_rate=1e-3", "train.head_rate=5e-3"),
        steps=dict.fromkeys(SPLITS, 10),
        evaluations=1,
        mixed=True,
        test=dict.fromkeys(SETTINGS, 2),
        dev=dict.fromkeys(SETTINGS, 1),
        minutes=0.3,
    ),
    "laptop": Budget(
        seeds=(1,),
        settings=("train.batch=1", "train.dev_episodes=40", "encoder.dropout=0"),
        steps={"inter": 4000, "intra": 2000},
        evaluations=3,
        mixed=True,
        test={(5, 1): 500, (10, 1): 250, (5, 5): 150, (10, 5): 80},
        dev={(5, 1): 100, (10, 1): 50, (5, 5): 50, (10, 5): 25},
        minutes=45,
    ),
    "paper": Budget(
        seeds=(1, 2, 3, 4, 5),
        settings=("train.batch=2", "train.encoder_rate=2e-5"),
        steps=dict.fromkeys(SPLITS, 10000),
        evaluations=20,
        mixed=False,
        test=dict.fromkeys(SETTINGS, 5000),
        dev=dict.fromkeys(SETTINGS, 500),
        minutes=120,
    ),
}
PAPER = {
    "intra": {
        "ProtoBERT": ((20.76, 0.84), (15.04, 0.44), (42.54, 0.94), (35.40, 0.13), (28.44, None)),
        "NNShot": ((25.78, 0.91), (18.27, 0.41), (36.18, 0.79), (27.38, 0.53), (26.90, None)),
        "StructShot": ((30.21, 0.90), (21.03, 1.13), (38.00, 1.29), (26.42, 0.60), (28.92, None)),
        "ESD": ((36.08, 1.6), (30.00, 0.70), (52.14, 1.5), (42.15, 2.6), (40.09, None)),
    },
    "inter": {
        "ProtoBERT": ((38.83, 1.49), (32.45, 0.79), (58.79, 0.44), (52.92, 0.37), (45.75, None)),
        "NNShot": ((47.24, 1.00), (38.87, 0.21), (55.64, 0.63), (49.57, 2.73), (47.83, None)),
        "StructShot": ((51.88, 0.69), (43.34, 0.10), (57.32, 0.63), (49.57, 3.08), (50.53, None)),
        "ESD": ((59.29, 1.25), (52.16, 0.79), (69.06, 0.80), (64.00, 0.43), (61.13, None)),
    },
}
"""Micro F1 and standard deviation in the order of SETTINGS, and on average."""
CHECKED = (
    "Checked where the ranking differs: all methods of a split are trained for the same number of steps, with the O "
    "bias tuned on the dev episodes of each setting; F1 is counted per sentence."
)
TITLE = "Few-NERD: INTER and INTRA, N-way K~2K-shot"


def episodes(workspace: Workspace, split: str, part: str, ways: int, shots: int) -> Path:
    """Return the file of the dev or test episodes of a setting."""
    budget = BUDGETS[workspace.budget]
    count = (budget.test if part == "test" else budget.dev)[ways, shots]
    return fewnerd_episodes(workspace, split, part, ways, shots, count)


def prepare(workspace: Workspace) -> None:
    """Check the text files, and draw the episodes that are not given."""
    for split in SPLITS:
        folder = fewnerd_folder(workspace, split)
        if not (folder / "train.txt").is_file():
            raise DataError(f"{folder / 'train.txt'}: no such file; --data must name the folder of the corpora")
        for part in ("dev", "test"):
            for ways, shots in SETTINGS:
                episodes(workspace, split, part, ways, shots)


def evaluation(workspace: Workspace, method: str, split: str, ways: int, shots: int) -> Evaluation:
    """Return the measurement of a method on the test episodes of a setting, with the O bias tuned on its dev ones."""
    entry = METHODS[method]
    return Evaluation(
        f"test-{ways}-{shots}" + (f"-{method.lower()}" if entry.assignments else ""),
        on=episodes(workspace, split, "test", ways, shots),
        tune_on=episodes(workspace, split, "dev", ways, shots),
        assignments=entry.assignments,
        first=BUDGETS[workspace.budget].test[ways, shots],
    )


def run(
    workspace: Workspace,
    method: str,
    split: str,
    setting: tuple[int, int],
    seed: int,
    measurements: Sequence[Measurement],
    rank: int = RANK,
) -> Job:
    """Plan the training of a method that serves a setting."""
    budget, entry = BUDGETS[workspace.budget], METHODS[method]
    data: Table
    if budget.mixed:
        data = {
            "kind": "mixture",
            "parts": ["fewnerd=io:train.txt"],
            "least_ways": LEAST_WAYS.get((split, entry.config), 1),
            "most_ways": 10,
            "shots": [1, 5],
            "most_spans": 25,
            "fewer_labels": 0.0,
            "no_punctuation": 0.0,
            "dev": [str(episodes(workspace, split, "dev", 5, shots)) for shots in (1, 5)],
        }
        name = f"fewnerd-{split}-{entry.config}-mixed"
    else:
        data = {"kind": "fewnerd", "ways": setting[0], "shots": setting[1]}
        name = f"fewnerd-{split}-{entry.config}-{setting[0]}way-{setting[1]}shot"
    data["folder"] = str(fewnerd_folder(workspace, split))
    config = "esd" if workspace.budget == "paper" and entry.config == "esd" else f"{entry.config}-minilm"
    return workspace.run(
        name,
        f"fewnerd/{config}",
        [
            *budget.settings,
            f"train.steps={budget.steps[split]}",
            f"train.evaluate_every={-(-budget.steps[split] // budget.evaluations)}",
            workspace.save_every,
        ],
        seed,
        measurements,
        minutes=budget.minutes,
        rank=rank,
        data=data,
    )


def jobs(workspace: Workspace) -> list[Job]:
    """Plan all trainings and their evaluations."""
    return [
        run(workspace, method, split, setting, seed, [evaluation(workspace, method, split, *setting)])
        for seed in BUDGETS[workspace.budget].seeds
        for split in SPLITS
        for method in MAIN
        for setting in SETTINGS
    ]


def reports(workspace: Workspace, method: str, split: str, setting: tuple[int, int]) -> list[RunReport]:
    """Return the finished evaluations of a method in a setting, one per seed."""
    item = evaluation(workspace, method, split, *setting)
    seeds = BUDGETS[workspace.budget].seeds
    return reports_of([(run(workspace, method, split, setting, seed, []).folder, item) for seed in seeds])


def split_title(workspace: Workspace, split: str) -> str:
    """Return the name of a split; INTRA-like if its files are not the official ones."""
    return fewnerd_folder(workspace, split).name.upper().replace("_LIKE", "-like")


def result(workspace: Workspace) -> Result:
    """Collect both tables and compare the rankings."""
    tables, charts, remarks = [], [], []
    for split in SPLITS:
        title = split_title(workspace, split)
        rows: dict[str, tuple[Cell | str, ...]] = {}
        curves: list[Curve] = []
        by_method = {method: [reports(workspace, method, split, setting) for setting in SETTINGS] for method in MAIN}
        for method in MAIN:
            figures = PAPER[split][method]
            cells = [f1_cell(row, *published) for row, published in zip(by_method[method], figures[:4], strict=True)]
            means = [cell.ours.mean for cell in cells if cell.ours]
            average = Measured(sum(means) / 4) if len(means) == 4 else None
            rows[method] = (*cells, Cell(average, figures[4][0]))
            if average is not None:
                curves.append(Curve.of_f1(method, [cell.ours for cell in cells if cell.ours]))
        settings = tuple(f"{ways}-way {shots}~{2 * shots}-shot" for ways, shots in SETTINGS)
        columns = (*settings, "Avg.")
        tables.append(ResultTable(f"{title}, micro F1", columns, rows))
        by_setting = {
            setting: {name: [run.report for run in row[number]] for name, row in by_method.items()}
            for number, setting in enumerate(settings)
        }
        if any(by_method["ESD"]):
            tables.append(difference_table(f"{title}, ESD compared with the others", "ESD", by_setting, "micro_f1"))
        if curves:
            label = "micro F1, with 95 % intervals"
            charts.append(Chart(f"fewnerd-{split}", f"Few-NERD {title}", "", label, settings, tuple(curves)))
        remarks += column_rankings(title, columns, rows)
    if any(map(differs, remarks)):
        remarks.append(CHECKED)
    return Result("fewnerd", TITLE, tuple(tables), tuple(charts), tuple(remarks), _settings(workspace))


def _settings(workspace: Workspace) -> tuple[str, ...]:
    budget = BUDGETS[workspace.budget]
    trained = (
        "One training per method and split serves all four settings: episodes of 1 to 10 ways (ESD on INTER: 5 to 10) "
        "and 1~2 or 5~10 shots, equally often, with at most 25 examples."
        if budget.mixed
        else "One training per method, split and setting."
    )
    return (
        trained,
        "Steps: " + ", ".join(f"{split_title(workspace, split)} {budget.steps[split]:,}" for split in SPLITS) + ".",
        f"Settings of all runs: {', '.join(budget.settings)}. Seeds: {', '.join(map(str, budget.seeds))}.",
        "Test episodes (at most): " + ", ".join(f"{n}-way {k}-shot {count}" for (n, k), count in budget.test.items()),
        "NNShot has the weights of StructShot with method.tau=0.",
        f"Command: spanshot reproduce fewnerd --budget {workspace.budget}",
    )


EXPERIMENT = Experiment("fewnerd", TITLE, prepare, jobs, result)
