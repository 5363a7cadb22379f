"""The one extension point: a method learns from episodes and, shown a support set, hands back a tagger."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from spanshot.research.nn.encoder import Encoder
from spanshot.types import Episode, ScoredSpan, Sentence, SupportSet


class SentenceTagger(Protocol):
    """A label set, learned: finds its spans in sentences. A value; calling it changes nothing."""

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """The spans found in each sentence; what is marked in the sentences is not looked at."""
        ...


class Method(nn.Module, ABC):
    """What every method can do. It holds weights, never a support set.

    A subclass names its ``Settings`` (a frozen dataclass, one docstring per field) and is listed in
    ``spanshot.research.methods.METHODS``; commands, checkpoints and the contract tests need nothing more.
    """

    name: ClassVar[str]
    Settings: ClassVar[type]
    reads_label_names: ClassVar[bool] = False
    """Whether what a label is called has a part in what is found."""

    def __init__(self, encoder: Encoder, settings: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.settings = settings

    @abstractmethod
    def episode_loss(self, episode: Episode) -> Tensor:
        """How badly the query is tagged after a look at the support; a scalar to minimise."""

    @abstractmethod
    def fit(self, support: SupportSet) -> SentenceTagger:
        """Learn the support set's labels, leaving the method itself as it is."""

    def study(self, sentences: Iterable[Sentence]) -> None:
        """Take statistics from the source corpus, once, before training. Most methods need none."""

    def pretraining(
        self,
        sentences: Sequence[Sentence],  # noqa: ARG002 (for methods that have one)
        size: int,  # noqa: ARG002
    ) -> tuple[nn.Module, Callable[[random.Random], Any]] | None:
        """Return a module whose call is a loss, and a function that draws ``size`` items for it; None if not needed."""
        return None

    def forward(self, episode: Episode) -> Tensor:
        """The loss, under the name by which distributed wrappers call it."""
        return self.episode_loss(episode)


def as_arrays(scores: Any) -> Any:
    """``SpanScores`` or ``TokenScores`` with their tensor as an array, for decoding."""
    parts = {name: getattr(scores, name, None) for name in ("scores", "evidence", "nearest")}
    return replace(scores, **{name: part.cpu().numpy() for name, part in parts.items() if part is not None})


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """No gradients and no dropout inside; every part of the module is in its own mode again afterwards."""
    training = [part for part in module.modules() if part.training]
    if training:
        module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in training:
            part.training = True
