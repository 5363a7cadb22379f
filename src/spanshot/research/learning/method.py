"""The extension point: a method trains on episodes and turns a support set into a tagger."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from spanshot.engine.names import readable_names
from spanshot.errors import ConfigError
from spanshot.research.nn.encoder import Encoder
from spanshot.research.pools import Pool
from spanshot.types import Episode, LearnOptions, Progress, Sentence, SentenceTagger, SupportSet

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SettingsT = TypeVar("SettingsT", bound="DataclassInstance", default="DataclassInstance", covariant=True)


@dataclass(frozen=True)
class Pretraining:
    """Training before the first episode: ``module`` returns the loss of an item that ``draw`` returns."""

    module: nn.Module
    draw: Callable[[random.Random], object]


class Method(nn.Module, ABC, Generic[SettingsT]):
    """Base class of all methods. A method holds weights, never a support set.

    A subclass names its ``Settings`` (a frozen dataclass with one docstring per field) and is listed in
    ``spanshot.research.methods.METHODS``. Commands, checkpoints and contract tests need nothing more.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[DataclassInstance]]
    reads_label_names: ClassVar[bool] = False
    """Whether the names of labels influence the predictions."""
    needs_examples: ClassVar[bool] = True
    """Whether every label of a support set needs an example."""

    def __init__(self, encoder: Encoder, settings: SettingsT) -> None:
        super().__init__()
        self.encoder = encoder
        self.settings = settings

    @abstractmethod
    def episode_loss(self, episode: Episode) -> Tensor:
        """Return the training loss of one episode, a scalar."""

    def pool_loss(self, pool: Pool) -> Tensor:
        """Return the training loss of the episodes of a pool; by default their mean."""
        return torch.stack([self.episode_loss(episode) for episode in pool.full_episodes()]).mean()

    @abstractmethod
    def fit(self, support: SupportSet, options: LearnOptions | None = None) -> SentenceTagger:
        """Learn the labels of a support set and return a tagger. The method itself does not change.

        Without options, the method works as published. With options, it also finds entities as long as the longest
        example.
        """

    def finetuned(self, support: SupportSet, progress: Progress | None = None) -> Method | None:  # noqa: ARG002
        """Return a copy, fine-tuned on a support set; None if the set is too small for that."""
        raise ConfigError(f"{self.name} always fine-tunes; leave `finetune` out")

    def names_of(self, support: SupportSet) -> dict[str, str]:
        """Return the name of each label of a support set, in words that an encoder can read."""
        return readable_names(support.label_names)

    def equals(self, other: Method) -> bool:
        """Return whether another method has the same settings and weights."""
        ours, theirs = self.state_dict(), other.state_dict()
        return (
            self.settings == other.settings
            and ours.keys() == theirs.keys()
            and all(ours[name].cpu().equal(theirs[name].cpu()) for name in ours)
        )

    def compute_statistics(self, sentences: Iterable[Sentence]) -> None:
        """Compute statistics of the source corpus, once, before training. Most methods need none."""

    def pretraining(self, sentences: Sequence[Sentence], batch: int) -> Pretraining | None:  # noqa: ARG002
        """Return the method's own pretraining on batches drawn from the source corpus, if it has one."""
        return None

    def forward(self, item: Episode | Pool) -> Tensor:
        """Return the loss. Distributed wrappers call this method."""
        return self.pool_loss(item) if isinstance(item, Pool) else self.episode_loss(item)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Turn off gradients and dropout inside; afterwards every submodule is in its former mode again."""
    training = [part for part in module.modules() if part.training]
    if training:
        module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in training:
            part.training = True
