"""Methods that remember the support set as vectors and score what is in a query by its nearness to them."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spanshot.decode.conflicts import Resolver
from spanshot.decode.decoders import Decoder, SpanDecoder
from spanshot.decode.evidence import with_evidence
from spanshot.decode.scores import SpanScores
from spanshot.research.learning.method import Method, as_arrays, evaluating
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.loss import span_loss
from spanshot.research.nn.spans import SpanMemory
from spanshot.types import Episode, ScoredSpan, Sentence, SupportSet

Memory = TypeVar("Memory")


@dataclass(frozen=True)
class MetricSettings:
    """How much is taken off O's score."""

    bias_by_shots: bool = False
    """Divide a label's O bias by the square root of the number of its examples: the fewer there are, the farther even
    the nearest lies. For models that serve labels of one example and of ten alike."""
    finetuned_bias: float = 0.0
    """What is added to the O bias after practice on a support set, which makes a model cautious."""


class MetricMethod(Method, Generic[Memory]):
    """Loss and tagger from four hooks: remember the support, score a query, the loss of scores, their decoder.

    ``o_bias`` is taken off O's score before anything is decided. It is tuned on the dev split while training
    and stored with the weights.
    """

    def __init__(self, encoder: Encoder, settings: Any) -> None:
        super().__init__(encoder, settings)
        self.o_bias: Tensor
        self.register_buffer("o_bias", torch.zeros(()))

    @abstractmethod
    def memory_of(self, support: SupportSet) -> Memory:
        """What is kept of the support set: a value that is passed along, never stored."""

    @abstractmethod
    def score(self, memory: Memory, sentences: Sequence[Sentence]) -> list[Any]:
        """``SpanScores`` or ``TokenScores`` of each sentence, before ``o_bias``."""

    @abstractmethod
    def loss(self, scored: Sequence[Any], gold: Sequence[Sentence]) -> Tensor:
        """How far the scores are from what is marked in the sentences."""

    @abstractmethod
    def decoder(self, support: SupportSet) -> Decoder:
        """What makes spans of scores, for the support set's labels."""

    def class_labels(self, support: SupportSet) -> Sequence[str]:
        """The label of each class that is scored, but for O."""
        return support.labels

    def bias_shares(self, support: SupportSet) -> npt.NDArray[np.float64] | None:
        """How much of the O bias each class but O is given; None for all of it."""
        return shares_by_shots(support, self.class_labels(support)) if self.settings.bias_by_shots else None

    def reaching(self, memory: Memory, words: int) -> Memory:  # noqa: ARG002
        """The memory, for queries with entities of so many words. Methods by words find spans of any length."""
        return memory

    def explained(self, memory: Memory, scores: Any, found: list[ScoredSpan]) -> list[ScoredSpan]:  # noqa: ARG002
        """The spans with the examples that made each decision, if the method can tell."""
        return found

    def episode_loss(self, episode: Episode) -> Tensor:  # noqa: D102 (said by the base class)
        return self.loss(self.score(self.memory_of(episode.support), episode.query), episode.query)

    def fit(self, support: SupportSet) -> MetricTagger[Memory]:  # noqa: D102
        with evaluating(self):
            memory, o_bias = self.memory_of(support), self.o_bias.item()
        return MetricTagger(self, memory, self.decoder(support), o_bias, self.bias_shares(support))


@dataclass(frozen=True)
class MetricTagger(Generic[Memory]):
    """A metric method and its memory of one support set."""

    method: MetricMethod[Memory]
    memory: Memory
    decoder: Decoder
    o_bias: float
    bias_shares: npt.NDArray[np.float64] | None = None
    """How much of the O bias each class but O is given; None for all of it."""
    batch_size: int = 32
    explain: bool = False
    """Say of each span which examples made the decision."""

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Tag the sentences."""
        return [self.decode(scores) for scores in self.scores(sentences)]

    def scores(self, sentences: Sequence[Sentence]) -> Iterator[Any]:
        """The scores of each sentence as arrays, before ``o_bias``; a few sentences are read at a time."""
        for start in range(0, len(sentences), self.batch_size):
            with evaluating(self.method):
                found = self.method.score(self.memory, sentences[start : start + self.batch_size])
            yield from map(as_arrays, found)

    def reaching(self, words: int) -> MetricTagger[Memory]:
        """One that finds entities of so many words, too, if the method is set to shorter ones."""
        return replace(self, memory=self.method.reaching(self.memory, words))

    def decode(self, scores: Any) -> list[ScoredSpan]:
        """From scores to spans."""
        o_bias = self.o_bias if self.bias_shares is None else self.o_bias * self.bias_shares
        found = self.decoder(scores, o_bias)
        return self.method.explained(self.memory, scores, found) if self.explain else found


class VectorMethod(MetricMethod[Memory]):
    """A metric method that reads each sentence on its own: its hooks are given encoded words.

    In training, support and query are read by the encoder in one go; a tagger keeps its memory and reads only
    what is new.
    """

    @abstractmethod
    def remember(self, support: SupportSet, words: WordVectors) -> Memory:
        """What is kept of the support set, whose encoded words are given."""

    @abstractmethod
    def scores(self, memory: Memory, words: WordVectors) -> list[Any]:
        """Scores of each sentence, whose encoded words are given."""

    def training_scores(self, memory: Memory, words: WordVectors) -> list[Any]:
        """What the loss is taken of; the same scores, unless a method trains by others."""
        return self.scores(memory, words)

    def memory_of(self, support: SupportSet) -> Memory:  # noqa: D102
        return self.remember(support, self.encoder(support.sentences))

    def score(self, memory: Memory, sentences: Sequence[Sentence]) -> list[Any]:  # noqa: D102
        return self.scores(memory, self.encoder(sentences))

    def episode_loss(self, episode: Episode) -> Tensor:  # noqa: D102
        words = self.encoder([*episode.support.sentences, *episode.query])
        support, query = words.split(len(episode.support.sentences))
        return self.loss(self.training_scores(self.remember(episode.support, support), query), episode.query)


class SpanMethod(VectorMethod[SpanMemory]):
    """A method that scores candidate spans; a resolver settles which of the overlapping ones stay."""

    @abstractmethod
    def resolver(self) -> Resolver:
        """What settles conflicts between overlapping spans."""

    def reaching(self, memory: SpanMemory, words: int) -> SpanMemory:  # noqa: D102
        return replace(memory, longest=max(words, self.settings.longest))

    def loss(self, scored: Sequence[SpanScores], gold: Sequence[Sentence]) -> Tensor:  # noqa: D102
        return span_loss(scored, gold)

    def explained(self, memory: SpanMemory, scores: SpanScores, found: list[ScoredSpan]) -> list[ScoredSpan]:
        """Add the support spans that weigh most, by the softmax of their similarities to each span."""
        return with_evidence(found, scores, memory.label_rows, memory.label_spans)

    def decoder(self, support: SupportSet) -> Decoder:  # noqa: ARG002, D102
        return SpanDecoder(self.resolver())


def shares_by_shots(support: SupportSet, labels: Sequence[str]) -> npt.NDArray[np.float64]:
    """One over the square root of how many examples each label has. [labels]"""
    shots = Counter(span.label for sentence in support.sentences for span in sentence.spans)
    return np.array([shots[label] ** -0.5 for label in labels])
