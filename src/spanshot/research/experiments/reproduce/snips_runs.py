"""Training runs on SNIPS: the budgets, and the settings of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanshot.research.corpora.snips import DOMAINS, FOLDS
from spanshot.research.experiments.reproduce.jobs import Job, Measurement
from spanshot.research.experiments.reproduce.methods import METHODS
from spanshot.research.experiments.reproduce.workspace import Workspace

SHOTS = (1, 5)
WE, RE = 1, 6  # folds
FINETUNED = ("transfer", "mrc", "convex")
"""Configs of methods that are fine-tuned on each episode, which is slow. They have no O bias to choose on dev."""


@dataclass(frozen=True)
class Budget:
    """The runs and measurements of one budget."""

    folds: tuple[int, ...]
    """Folds of the four main methods."""
    other_folds: tuple[int, ...]
    """Folds of the other six methods."""
    seeds: tuple[int, ...]
    """Seeds of every method."""
    settings: tuple[str, ...]
    """Settings of every run."""
    steps: int
    """Training steps."""
    train_shots: int = 0
    """Train once per fold for both settings, on episodes of this number of shots (0: once for each setting)."""
    fewer_steps: dict[str, int] = field(default_factory=dict)
    """Training steps by config, for methods whose steps take longer."""
    more_seeds: tuple[int, ...] = ()
    """Further seeds of ESD and StructShot, after all other runs."""
    minutes: float = 1.0
    """Expected core-minutes of a run."""
    episodes: int = 0
    """Test episodes (0: all 100)."""

    def shots_of_run(self, shots: int) -> int:
        """Return the shots of the training episodes of the run that serves the setting with ``shots``."""
        return self.train_shots or shots


# One laptop budget for all methods: 800 steps, or as many as fit into 20 core-minutes (L-TapNet+CDT encodes pairs of
# sentences, Ma2021 asks a question for each label). On dev of ESD, 5-shot episodes are as good as 1-shot ones in both
# settings or better, and more steps are no better (docs/lab-log.md).
BUDGETS = {
    "small": Budget(
        folds=(WE, RE),
        other_folds=(WE,),
        seeds=(1,),
        more_seeds=(2,),
        settings=("train.batch=1", "train.encoder_rate=1e-3", "train.head_rate=5e-3", "train.dev_episodes=2"),
        steps=8,
        train_shots=5,
        minutes=0.06,
        episodes=3,
    ),
    "laptop": Budget(
        folds=tuple(FOLDS),
        other_folds=(WE, RE),
        seeds=(1,),
        more_seeds=(2, 3),
        settings=(
            "data.queries=8",
            "train.batch=1",
            "train.encoder_rate=1e-4",
            "encoder.word_dropout=0.15",
            "encoder.dropout=0",
            "train.dev_episodes=40",
        ),
        steps=800,
        train_shots=5,
        fewer_steps={"tapnet_cdt": 350, "mrc": 450},
        minutes=10,
    ),
    "paper": Budget(
        folds=tuple(FOLDS),
        other_folds=tuple(FOLDS),
        seeds=tuple(range(1, 11)),
        settings=("data.queries=5", "train.dev_episodes=0"),
        steps=4500,
        minutes=50,
    ),
}
PAPER_RATES = {
    (2, 1): ("train.encoder_rate=5e-6", "train.head_rate=1e-4"),
    (4, 1): ("train.encoder_rate=1e-5", "train.head_rate=1e-4"),
}
"""The paper's own learning rates of ESD for "Mu" and "Bo" at 1-shot, by fold and shots."""


def run(
    workspace: Workspace,
    method: str,
    fold: int,
    shots: int,
    seed: int,
    measurements: Sequence[Measurement] = (),
    *,
    steps: int = 0,
    extra: Sequence[str] = (),
    name: str = "",
    rank: int = 0,
) -> Job:
    """Plan the training of a method on the episodes of a fold with ``shots`` examples per label.

    Other ``steps`` (0: those of the budget) and ``extra`` settings make another run, which needs another ``name``.
    """
    budget, entry = BUDGETS[workspace.budget], METHODS[method]
    is_paper = workspace.budget == "paper"
    config = "esd" if is_paper and entry.config == "esd" else f"{entry.config}-minilm"
    steps = steps or budget.fewer_steps.get(entry.config, budget.steps)
    settings = [
        f"data.folder={workspace.data / 'snips'}",
        f"data.fold={fold}",
        f"data.shots={shots}",
        *budget.settings,
        f"train.steps={steps}",
        f"train.evaluate_every={steps if not is_paper else 250}",
        workspace.save_every,
        *(("train.dev_episodes=2",) if entry.config in FINETUNED else ()),
        *(PAPER_RATES.get((fold, shots), ()) if is_paper and entry.config == "esd" else ()),
        *(("pretrain.steps=4", "pretrain.batch=4") if workspace.budget == "small" and entry.config == "convex" else ()),
        *extra,
    ]
    return workspace.run(
        _run_name(name or entry.config, fold, shots),
        f"snips/{config}",
        settings,
        seed,
        measurements,
        minutes=budget.minutes,
        rank=rank,
    )


def run_folder(workspace: Workspace, method: str, fold: int, shots: int, seed: int) -> Path:
    """Return the folder of the run of a method that serves the setting with ``shots``."""
    name = _run_name(METHODS[method].config, fold, BUDGETS[workspace.budget].shots_of_run(shots))
    return workspace.runs / f"{name}-seed{seed}"


def _run_name(name: str, fold: int, shots: int) -> str:
    return f"snips-{name}-{DOMAINS[fold - 1]}-{shots}shot"
