"""All settings of a run, in the sections of its TOML file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spanshot.errors import ConfigError
from spanshot.research.corpora.source import Source
from spanshot.research.corpora.sources import SOURCES
from spanshot.research.model_settings import MODEL_SECTIONS, ModelSettings, build_choice, unknown_names
from spanshot.settings import Table, build_section, override, raise_if_any, read_table, to_table

KEEP = ("best", "last")


@dataclass(frozen=True)
class StageSettings:
    """[train] and [warm_start]: how long, how much at a time, how fast."""

    steps: int = 1000
    """Optimiser steps."""
    batch: int = 4
    """Episodes (in a warm start: sentences) per step and process."""
    encoder_rate: float = 5e-5
    """Peak learning rate of the encoder."""
    head_rate: float = 5e-4
    """Peak learning rate of everything else."""
    warmup: float = 0.1
    """Part of the steps in which the rates rise to their peak; then they fall linearly to 0."""
    weight_decay: float = 0.01
    """AdamW's weight decay."""
    clip: float = 1.0
    """Longest gradient (norm)."""
    accumulate: int = 1
    """Batches whose gradients are added up before a step."""

    def __post_init__(self) -> None:
        for name in ("batch", "accumulate"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; found {getattr(self, name)}")
        if self.steps < 0:
            raise ConfigError(f"steps must be 0 or more; found {self.steps}")
        if not 0 <= self.warmup < 1:
            raise ConfigError(f"warmup is a part of the steps, in 0..1; found {self.warmup}")
        for name in ("encoder_rate", "head_rate", "weight_decay", "clip"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be 0 or more; found {getattr(self, name)}")


@dataclass(frozen=True)
class TrainSettings(StageSettings):
    """[train]: the episodes."""

    start: str = ""
    """A run or checkpoint whose weights training starts from, or `embedded`, for the model that comes with the package;
    without, only the encoder knows anything yet."""
    evaluate_every: int = 200
    """Steps between two looks at the dev split."""
    dev_episodes: int = 0
    """How many dev episodes to look at while training, evenly spread; 0 for all."""
    keep: str = "best"
    """Which weights a run keeps: `best` by dev F1, or `last`, where the dev split is no good judge of when to stop."""
    patience: int = 0
    """Stop after so many looks without a better dev F1; 0 never stops early."""
    save_every: int = 100
    """Steps between two saved states to resume from."""
    o_biases: tuple[float, ...] = (-2.0, -1.5, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
    """O biases to try on the dev split; the one with the best F1 is kept, the smallest of equals."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluate_every < 1 or self.save_every < 1:
            raise ConfigError("evaluate_every and save_every must be at least 1")
        if self.keep not in KEEP:
            raise ConfigError(f"keep must be one of {', '.join(KEEP)}; found {self.keep!r}")
        if self.keep == "last" and self.patience:
            raise ConfigError('patience has no meaning with keep = "last"; leave one of them out')
        if self.dev_episodes < 0 or self.patience < 0:
            raise ConfigError("dev_episodes and patience must be 0 or more")
        if 0.0 not in self.o_biases:
            raise ConfigError("o_biases must contain 0.0, so that F1 without a bias is known too")


@dataclass(frozen=True)
class WarmStartSettings(StageSettings):
    """[warm_start]: the encoder as an ordinary span classifier over the source labels. Off with 0 steps."""

    steps: int = 0
    """Optimiser steps; 0 for no warm start."""
    batch: int = 16
    """Sentences per step and process."""


@dataclass(frozen=True)
class RunSettings:
    """A training run: the model, and the record of how it is trained."""

    model: ModelSettings
    data_kind: str
    data: Source
    train: TrainSettings = field(default_factory=TrainSettings)
    warm_start: WarmStartSettings = field(default_factory=WarmStartSettings)
    seed: int = 1

    @classmethod
    def read(cls, path: str | Path, assignments: Iterable[str] = ()) -> RunSettings:
        """Read a TOML file and apply overrides such as ``train.steps=100``."""
        try:
            return cls.of(override(read_table(path), assignments))
        except ConfigError as problem:
            raise ConfigError(str(problem) if str(path) in str(problem) else f"{path}: {problem}") from None

    @classmethod
    def of(cls, table: Mapping[str, object]) -> RunSettings:
        """Build from a table; one error lists every problem."""
        problems = unknown_names(table, ("seed", "data", "train", "warm_start", *MODEL_SECTIONS))
        seed = table.get("seed", 1)
        if type(seed) is not int:
            problems.append(f"setting 'seed' must be of type int; found {seed!r}")
        model = ModelSettings.collect(table, problems)
        data = build_choice(table, "data", "kind", SOURCES, SOURCES.__getitem__, problems)
        train = build_section(TrainSettings, table.get("train", {}), "train", problems)
        warm_start = build_section(WarmStartSettings, table.get("warm_start", {}), "warm_start", problems)
        raise_if_any(problems)
        assert isinstance(seed, int)
        assert model
        assert data
        assert train
        assert warm_start
        return cls(model, *data, train, warm_start, seed)

    def to_table(self) -> Table:
        """Return the table that :meth:`of` reads."""
        return {
            "seed": self.seed,
            **self.model.to_table(),
            "data": {"kind": self.data_kind, **to_table(self.data)},
            "train": to_table(self.train),
            "warm_start": to_table(self.warm_start),
        }


def config_name(config: Path) -> str:
    """Return the name of a config in the names of runs: ``configs/snips/esd.toml`` is ``snips-esd``."""
    corpus = f"{config.parent.name}-" if config.parent.parent.name == "configs" else ""
    return f"{corpus}{config.stem}"
