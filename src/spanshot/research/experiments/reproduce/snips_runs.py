"""Training runs on SNIPS: the budgets, and the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanshot.research.corpora.snips import DOMAINS, FOLDS
from spanshot.research.experiments.reproduce.jobs import Job, Measurement
from spanshot.research.experiments.reproduce.methods import METHODS
from spanshot.research.experiments.reproduce.workspace import Workspace

SHOTS = (1, 5)
WE, RE = 1, 6  # folds
SEPARATE = ("esd",)
"""Configs that are always trained for each setting."""
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
    steps: Mapping[int, int]
    """Training steps by the number of shots."""
    settings_of: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Further settings by the number of shots."""
    fewer_steps: Mapping[str, int] = field(default_factory=dict)
    """Training steps by config, for methods whose steps take longer."""
    train_shots: int = 0
    """Train once for both settings, on episodes of this number of shots (0: once for each setting), apart from the
    configs in `SEPARATE`."""
    more_seeds: tuple[int, ...] = ()
    """Further seeds of ESD and StructShot, after all other runs."""
    minutes: float = 1.0
    """Expected core-minutes of a run."""
    episodes: int = 0
    """Test episodes (0: all 100)."""

    def trains_once(self, config: str) -> bool:
        """Return whether one training of a config serves both settings."""
        return self.train_shots > 0 and config not in SEPARATE

    def shots_of_run(self, config: str, shots: int) -> int:
        """Return the shots of the training episodes of the run that serves the setting with ``shots``."""
        return self.train_shots if self.trains_once(config) else shots


# One laptop budget for all methods, or as many of its steps as fit into 20 core-minutes (L-TapNet+CDT encodes pairs of
# sentences, Ma2021 asks a question for each label). At 1-shot, ESD is better on dev if it is trained on 1-shot
# episodes; StructShot is about the same, so one training of the other methods, on 5-shot episodes, serves both settings
# (docs/lab-log.md).
BUDGETS = {
    "small": Budget(
        folds=(WE, RE),
        other_folds=(WE,),
        seeds=(1,),
        more_seeds=(2,),
        settings=("train.batch=1", "train.encoder_rate=1e-3", "train.head_rate=5e-3", "train.dev_episodes=2"),
        steps={1: 8, 5: 8},
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
            "encoder.word_dropout=0.15",
            "encoder.dropout=0",
            "train.dev_episodes=40",
        ),
        settings_of={1: ("train.encoder_rate=3e-5",), 5: ("train.encoder_rate=1e-4",)},
        steps={1: 2500, 5: 800},
        fewer_steps={"tapnet_cdt": 350, "mrc": 450},
        train_shots=5,
        minutes=10,
    ),
    "paper": Budget(
        folds=tuple(FOLDS),
        other_folds=tuple(FOLDS),
        seeds=tuple(range(1, 11)),
        settings=("data.queries=5", "train.dev_episodes=0"),
        steps={1: 4500, 5: 4500},
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
    """Plan the training of a method that serves the episodes of a fold with ``shots`` examples per label.

    Other ``steps`` (0: those of the budget) and ``extra`` settings make another run, which needs another ``name``.
    """
    budget, entry = BUDGETS[workspace.budget], METHODS[method]
    is_paper = workspace.budget == "paper"
    config = "esd" if is_paper and entry.config == "esd" else f"{entry.config}-minilm"
    shots = budget.shots_of_run(entry.config, shots)
    steps = steps or budget.fewer_steps.get(entry.config, budget.steps[shots])
    settings = [
        f"data.folder={workspace.data / 'snips'}",
        f"data.fold={fold}",
        f"data.shots={shots}",
        *budget.settings,
        *budget.settings_of.get(shots, ()),
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
    """Return the folder of the run that serves the episodes of a fold with ``shots`` examples per label."""
    config = METHODS[method].config
    shots = BUDGETS[workspace.budget].shots_of_run(config, shots)
    return workspace.runs / f"{_run_name(config, fold, shots)}-seed{seed}"


def _run_name(name: str, fold: int, shots: int) -> str:
    return f"snips-{name}-{DOMAINS[fold - 1]}-{shots}shot"
