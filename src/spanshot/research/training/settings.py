"""The settings of a training run, by the sections of its TOML file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spanshot.errors import ConfigError
from spanshot.research.corpora.registry import SOURCES
from spanshot.research.corpora.source import Source
from spanshot.research.model_settings import MODEL_SECTIONS, ModelSettings, build_choice, unknown_names
from spanshot.settings import Table, build_section, override, raise_if_any, read_table, to_table

KEEP = ("best", "last")
PRECISIONS = ("float32", "float16", "bfloat16")
O_BIASES = (-2.0, -1.5, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)


@dataclass(frozen=True)
class StageSettings:
    """[train] and [pretrain]: length, batch size and learning rates."""

    steps: int = 1000
    """Number of optimizer steps."""
    batch: int = 4
    """Episodes (in pretraining: items) per step and process."""
    encoder_rate: float = 5e-5
    """Peak learning rate of the encoder."""
    head_rate: float = 5e-4
    """Peak learning rate of all other weights."""
    warmup: float = 0.1
    """Fraction of the steps during which the learning rates rise to their peak."""
    decay: float = 1.0
    """Fraction of the steps, at the end, during which the learning rates fall linearly to 0 (1: all after the warm-up,
    0: they stay at their peak)."""
    weight_decay: float = 0.01
    """Weight decay of AdamW."""
    beta2: float = 0.999
    """How slowly AdamW's average of squared gradients changes."""
    clip: float = 1.0
    """Maximum norm of the gradient (0: no limit)."""
    accumulate: int = 1
    """Batches whose gradients are added up for one step, which is then the same as one with a larger batch."""

    def __post_init__(self) -> None:
        for name in ("batch", "accumulate"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1; found {getattr(self, name)}")
        if self.steps < 0:
            raise ConfigError(f"steps must be 0 or more; found {self.steps}")
        if not 0 <= self.warmup < 1:
            raise ConfigError(f"warmup is a fraction of the steps, in 0..1; found {self.warmup}")
        if not 0 <= self.decay <= 1 or not 0 <= self.beta2 < 1:
            raise ConfigError(f"decay and beta2 must lie in 0..1; found {self.decay} and {self.beta2}")
        for name in ("encoder_rate", "head_rate", "weight_decay", "clip"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be 0 or more; found {getattr(self, name)}")


@dataclass(frozen=True)
class TrainSettings(StageSettings):
    """[train]: training on episodes."""

    start: str = ""
    """Start from the weights of this run or checkpoint, or of the shipped model (`embedded`). By default only the
    encoder is pretrained."""
    evaluate_every: int = 200
    """Evaluate on the dev split every N steps."""
    dev_episodes: int = 0
    """Use only N dev episodes during training, evenly spaced (0: all)."""
    keep: str = "best"
    """Keep the `best` weights by dev F1, or the `last` ones."""
    patience: int = 0
    """Stop after N evaluations without a better dev F1 (0: never)."""
    save_every: int = 100
    """Save the state of the run every N steps, for resuming."""
    average: float = 0.0
    """Evaluate and keep an exponential average of the weights that changes by this factor per step, such as 0.998
    (0: the weights themselves)."""
    trim_every: int = 0
    """Return freed memory to the system every N steps, for steps of very different sizes (0: never)."""
    workers: int = 0
    """Processes per device that draw episodes in advance, so that a fast device need not wait (0: none). They draw the
    same episodes; each reads the corpus itself."""
    precision: str = "float32"
    """Precision in which the encoder computes: `float32`, or `float16` or `bfloat16` where the device supports it.
    Weights, losses and evaluation stay in float32."""
    o_biases: tuple[float, ...] = O_BIASES
    """O biases to try on the dev split. The best one is kept; among equals, the one closest to 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluate_every < 1 or self.save_every < 1:
            raise ConfigError("evaluate_every and save_every must be at least 1")
        if self.keep not in KEEP:
            raise ConfigError(f"keep must be one of {', '.join(KEEP)}; found {self.keep!r}")
        if self.keep == "last" and self.patience:
            raise ConfigError('patience has no meaning with keep = "last"; leave one of them out')
        if self.precision not in PRECISIONS:
            raise ConfigError(f"precision must be one of {', '.join(PRECISIONS)}; found {self.precision!r}")
        if min(self.dev_episodes, self.patience, self.trim_every, self.workers) < 0:
            raise ConfigError("dev_episodes, patience, trim_every and workers must be 0 or more")
        if not 0 <= self.average < 1:
            raise ConfigError(f"average must be 0 (off) or a factor below 1; found {self.average}")
        if 0.0 not in self.o_biases:
            raise ConfigError("o_biases must contain 0.0, so that F1 without a bias is reported too")


@dataclass(frozen=True)
class PretrainSettings(StageSettings):
    """[pretrain]: training before the first episode, for methods that have it (ConVEx)."""

    steps: int = 0
    """Number of optimizer steps (0: no pretraining)."""
    batch: int = 16
    """Items per step and process."""


@dataclass(frozen=True)
class RunSettings:
    """A training run: the model, and the record of how it is trained."""

    model: ModelSettings
    data_kind: str
    data: Source
    train: TrainSettings = field(default_factory=TrainSettings)
    pretrain: PretrainSettings = field(default_factory=PretrainSettings)
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
        problems = unknown_names(table, ("seed", "data", "train", "pretrain", *MODEL_SECTIONS))
        seed = table.get("seed", 1)
        if type(seed) is not int:
            problems.append(f"setting 'seed' must be of type int; found {seed!r}")
        model = ModelSettings.collect(table, problems)
        data = build_choice(table, "data", "kind", SOURCES, SOURCES.__getitem__, problems)
        train = build_section(TrainSettings, table.get("train", {}), "train", problems)
        pretrain = build_section(PretrainSettings, table.get("pretrain", {}), "pretrain", problems)
        raise_if_any(problems)
        assert isinstance(seed, int)
        assert model
        assert data
        assert train
        assert pretrain
        return cls(model, *data, train, pretrain, seed)

    def to_table(self) -> Table:
        """Return the table that `of` reads."""
        return {
            "seed": self.seed,
            **self.model.to_table(),
            "data": {"kind": self.data_kind, **to_table(self.data)},
            "train": to_table(self.train),
            "pretrain": to_table(self.pretrain),
        }


def config_name(config: Path) -> str:
    """Return the name of a config in the names of runs: ``configs/snips/esd.toml`` is ``snips-esd``."""
    corpus = f"{config.parent.name}-" if config.parent.parent.name == "configs" else ""
    return f"{corpus}{config.stem}"
