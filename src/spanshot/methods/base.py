"""The one extension point: a method learns from episodes and, shown a support set, hands back a tagger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from spanshot.decode.conflicts import Resolver
from spanshot.decode.scores import SpanScores, likely_spans
from spanshot.nn.encoder import Encoder, WordVectors
from spanshot.nn.loss import span_loss
from spanshot.types import Episode, ScoredSpan, Sentence, SupportSet

Memory = TypeVar("Memory")


class Tagger(Protocol):
    """A label set, learned: finds its spans in sentences. A value; calling it changes nothing."""

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """The spans found in each sentence; what is marked in the sentences is not looked at."""
        ...


class Method(nn.Module, ABC):
    """What every method can do. It holds weights, never a support set.

    A subclass names its ``Settings`` (a frozen dataclass, one docstring per field) and is listed in
    ``spanshot.methods.METHODS``; commands, checkpoints and the contract tests need nothing more.
    """

    name: ClassVar[str]
    Settings: ClassVar[type]

    def __init__(self, encoder: Encoder, settings: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.settings = settings

    @abstractmethod
    def episode_loss(self, episode: Episode) -> Tensor:
        """How badly the query is tagged after a look at the support; a scalar to minimise."""

    @abstractmethod
    def adapt(self, support: SupportSet) -> Tagger:
        """Learn the support set's labels, leaving the method itself as it is."""

    def study(self, sentences: Iterable[Sentence]) -> None:
        """Take statistics from the source corpus, once, before training. Most methods need none."""

    def forward(self, episode: Episode) -> Tensor:
        """The loss, under the name by which distributed wrappers call it."""
        return self.episode_loss(episode)


class MetricMethod(Method, Generic[Memory]):
    """A method that remembers the support set as vectors and scores query spans by their nearness to it.

    ``o_bias`` is taken off O's score before anything is decided. It is tuned on the dev split while training
    and stored with the weights.
    """

    def __init__(self, encoder: Encoder, settings: Any) -> None:
        super().__init__(encoder, settings)
        self.o_bias: Tensor
        self.register_buffer("o_bias", torch.zeros(()))

    @abstractmethod
    def remember(self, support: SupportSet, words: WordVectors) -> Memory:
        """What is kept of the support set, whose encoded words are given: a value that is passed along."""

    @abstractmethod
    def scores(self, memory: Memory, words: WordVectors) -> list[SpanScores]:
        """Scores of every candidate in each sentence, whose encoded words are given, before ``o_bias``."""

    @abstractmethod
    def resolver(self) -> Resolver:
        """What settles conflicts between overlapping spans."""

    def episode_loss(self, episode: Episode) -> Tensor:  # noqa: D102 (said by the base class)
        words = self.encoder([*episode.support.sentences, *episode.query])
        support, query = words.split(len(episode.support.sentences))
        return span_loss(self.scores(self.remember(episode.support, support), query), episode.query)

    def adapt(self, support: SupportSet) -> MetricTagger[Memory]:  # noqa: D102
        with evaluating(self):
            return MetricTagger(self, self.remember(support, self.encoder(support.sentences)), self.o_bias.item())


@dataclass(frozen=True)
class MetricTagger(Generic[Memory]):
    """A metric method and its memory of one support set."""

    method: MetricMethod[Memory]
    memory: Memory
    o_bias: float
    batch_size: int = 32

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Tag the sentences."""
        return [self.decode(scores) for scores in self.scores(sentences)]

    def scores(self, sentences: Sequence[Sentence]) -> Iterator[SpanScores]:
        """The scores of each sentence as arrays, before ``o_bias``; a few sentences are read at a time."""
        for start in range(0, len(sentences), self.batch_size):
            with evaluating(self.method):
                words = self.method.encoder(sentences[start : start + self.batch_size])
                found = self.method.scores(self.memory, words)
            for scores in found:
                yield replace(scores, scores=scores.scores.cpu().numpy())

    def decode(self, scores: SpanScores) -> list[ScoredSpan]:
        """From scores to spans."""
        return self.method.resolver()(likely_spans(scores, self.o_bias))


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
