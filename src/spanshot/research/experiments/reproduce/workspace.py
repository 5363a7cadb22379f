"""The folders that an experiment reads from and writes to, and the runs that it plans in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanshot.errors import ConfigError, did_you_mean
from spanshot.research.configs import find_config
from spanshot.research.experiments.reproduce.jobs import Job, Measurement
from spanshot.research.experiments.reproduce.results import Result
from spanshot.research.training.settings import RunSettings
from spanshot.settings import Table, override, read_table

BUDGETS = ("small", "laptop", "paper")


@dataclass(frozen=True)
class Workspace:
    """Where the data is, where results go, and how much may be spent.

    ``out/runs`` contains one folder per training run, ``out/episodes`` the episodes drawn for the experiments, and
    ``out/NAME`` the tables and plots of an experiment. Paths are absolute, since they are part of the settings of runs.
    """

    budget: str
    data: Path
    out: Path

    def __post_init__(self) -> None:
        if self.budget not in BUDGETS:
            hint = did_you_mean(self.budget, BUDGETS)
            raise ConfigError(f"--budget must be one of {', '.join(BUDGETS)}; found {self.budget!r}{hint}")
        object.__setattr__(self, "data", self.data.expanduser().absolute())
        object.__setattr__(self, "out", self.out.expanduser().absolute())

    @property
    def runs(self) -> Path:
        """Folder of all runs."""
        return self.out / "runs"

    @property
    def episodes(self) -> Path:
        """Folder of the episodes that experiments draw."""
        return self.out / "episodes"

    @property
    def save_every(self) -> str:
        """The setting how often the state of a run is saved."""
        return f"train.save_every={2 if self.budget == 'small' else 50}"

    @property
    def encoder(self) -> Path:
        """Folder of the tiny encoder of the small budget."""
        return self.data / "encoder"

    def run(
        self,
        name: str,
        config: str,
        assignments: Sequence[str],
        seed: int,
        measurements: Sequence[Measurement],
        *,
        minutes: float,
        rank: int,
        data: Table | None = None,
    ) -> Job:
        """Plan a training run of a packaged config with changed settings. ``data`` replaces its section [data]."""
        encoder = {
            "small": [f"encoder.name={self.encoder}", "encoder.freeze_embeddings=false"],
            "laptop": [],
            "paper": ["encoder.name=bert-base-uncased", "encoder.freeze_embeddings=false"],
        }[self.budget]
        table = read_table(find_config(config))
        table = table if data is None else {**table, "data": data}
        settings = RunSettings.of(override(table, [*encoder, *assignments, f"seed={seed}"]))
        folder = self.runs / f"{name}-seed{seed}"
        return Job(folder, settings, tuple(measurements), minutes, rank)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    title: str
    prepare: Callable[[Workspace], None]
    """Check the data and draw the episodes that do not exist yet."""
    jobs: Callable[[Workspace], list[Job]]
    """Plan all runs and measurements."""
    result: Callable[[Workspace], Result]
    """Collect the finished results."""
