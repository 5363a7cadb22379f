"""Methods that remember a support set as vectors and score queries by their similarity to them."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import TypeVar, override

from spanshot.decode.conflicts import NESTED
from spanshot.decode.decoders import Decoder
from spanshot.decode.scores import SpanScores, TokenScores
from spanshot.decode.spans import Resolver, SpanDecoder, with_evidence
from spanshot.errors import ConfigError
from spanshot.research.learning.method import Method, evaluating
from spanshot.research.learning.support_finetuning import SupportFinetuning, finetuned
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.loss import SpanLogits, span_loss
from spanshot.research.nn.spans import SpanMemory
from spanshot.research.pools import Pool
from spanshot.types import Episode, LearnOptions, Progress, ScoredSpan, Sentence, SupportSet
from spanshot.words import batches


@dataclass(frozen=True)
class MetricSettings:
    """Settings of every metric method: the O bias, which is subtracted from the score of O."""

    bias_by_shots: bool = False
    """Divide the O bias by the square root of the number of a label's examples. For models that serve labels of one
    example and of ten: with few examples, even the nearest is far."""
    finetuned_bias: float = 0.0
    """Added to the O bias after fine-tuning on a support set, which lowers recall."""


@dataclass(frozen=True)
class SpanSettings(MetricSettings):
    """Settings of methods that score candidate spans."""

    size: int = 100
    """Length of a span's vector (d in ESD's paper)."""
    longest: int = 8
    """Maximum length of a candidate span, in words (L)."""
    dropout: float = 0.1
    """Dropout in the heads."""
    o_spans: int = 0
    """Maximum number of O spans to keep from a support set for each part of O, evenly spread (0: all)."""

    def __post_init__(self) -> None:
        if min(self.size, self.longest) < 1:
            raise ConfigError(f"size and longest must be at least 1; found {self.size} and {self.longest}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be from 0 to below 1; found {self.dropout}")
        if self.o_spans < 0:
            raise ConfigError(f"o_spans must be 0 (all) or more; found {self.o_spans}")


MetricSettingsT = TypeVar("MetricSettingsT", bound=MetricSettings, default=MetricSettings, covariant=True)
SpanSettingsT = TypeVar("SpanSettingsT", bound=SpanSettings, default=SpanSettings, covariant=True)
MemoryT = TypeVar("MemoryT", default=Any)
ScoresT = TypeVar("ScoresT", bound=SpanScores | TokenScores, default=Any)


class MetricMethod(Method[MetricSettingsT], Generic[MetricSettingsT, MemoryT, ScoresT]):
    """A method given by three hooks: remember a support set, score sentences, decode scores.

    ``o_bias`` is subtracted from the score of O before decoding. It is chosen on the dev split during training and
    stored with the weights.
    """

    def __init__(self, encoder: Encoder, settings: MetricSettingsT) -> None:
        super().__init__(encoder, settings)
        self.o_bias: Tensor
        self.register_buffer("o_bias", torch.zeros(()))

    @abstractmethod
    def remember(self, support: SupportSet) -> MemoryT:
        """Return the memory of a support set: a value that is passed along, never stored on the method."""

    @abstractmethod
    def scores(self, memory: MemoryT, sentences: Sequence[Sentence]) -> list[ScoresT]:
        """Return the scores of each sentence, before ``o_bias``."""

    @abstractmethod
    def decoder(self, support: SupportSet) -> Decoder[ScoresT]:
        """Return the decoder from scores to spans for the labels of a support set."""

    def nested_decoder(self) -> Decoder[ScoresT]:
        """Return a decoder that finds entities within entities."""
        raise ConfigError(f"{self.name} cannot find nested entities: it gives each word one tag")

    def class_labels(self, support: SupportSet) -> Sequence[str]:
        """Return the label of each scored class but O."""
        return support.labels

    def with_longest(self, memory: MemoryT, words: int) -> MemoryT:  # noqa: ARG002
        """Return the memory for queries with entities of at most ``words`` words."""
        return memory

    def explained(self, memory: MemoryT, scores: ScoresT, spans: list[ScoredSpan]) -> list[ScoredSpan]:  # noqa: ARG002
        """Add the examples behind each decision, if single examples decide."""
        return spans

    @override
    def finetuned(
        self, support: SupportSet, progress: Progress | None = None
    ) -> MetricMethod[MetricSettingsT, MemoryT, ScoresT] | None:
        tuned = finetuned(self, support, SupportFinetuning(), progress)
        return None if tuned is self else tuned

    @override
    def fit(self, support: SupportSet, options: LearnOptions | None = None) -> MetricTagger[MemoryT, ScoresT]:
        with evaluating(self) if self.training else torch.inference_mode():
            memory = self.remember(support)
        decoder = self.nested_decoder() if options and options.nested else self.decoder(support)
        shares = None
        if self.settings.bias_by_shots:
            shots = Counter(span.label for sentence in support.sentences for span in sentence.spans)
            shares = np.array([shots[label] ** -0.5 for label in self.class_labels(support)])
        if options is None:
            return MetricTagger(self, memory, decoder, self.o_bias.item(), shares)
        longest = max((len(span) for sentence in support.sentences for span in sentence.spans), default=0)
        memory = self.with_longest(memory, longest)
        return MetricTagger(self, memory, decoder, self.o_bias.item(), shares, options.max_batch_words)


@dataclass(frozen=True)
class MetricTagger(Generic[MemoryT, ScoresT]):
    """A metric method and its memory of one support set."""

    method: MetricMethod[MetricSettings, MemoryT, ScoresT]
    memory: MemoryT
    decoder: Decoder[ScoresT]
    o_bias: float
    bias_shares: npt.NDArray[np.float64] | None = None
    """Factor of the O bias for each class but O; None: 1."""
    max_batch_words: int = 1024
    """Maximum number of words per batch, padding included."""

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Tag the sentences and add the examples behind each decision."""
        spans: list[list[ScoredSpan]] = [[] for _ in sentences]
        o_bias = self.o_bias if self.bias_shares is None else self.o_bias * self.bias_shares
        for number, scores in self.scores(sentences):
            spans[number] = self.method.explained(self.memory, scores, self.decoder(scores, o_bias))
        return spans

    def scores(self, sentences: Sequence[Sentence]) -> Iterator[tuple[int, ScoresT]]:
        """Yield the number of each sentence and its scores, before ``o_bias``, in batches of like length."""
        for numbers in batches([len(sentence.words) for sentence in sentences], self.max_batch_words):
            with evaluating(self.method) if self.method.training else torch.inference_mode():
                scores = self.method.scores(self.memory, [sentences[number] for number in numbers])
            yield from zip(numbers, scores, strict=True)

    def decode(self, scores: ScoresT) -> list[ScoredSpan]:
        """Return the spans that the scores of a sentence stand for."""
        return self.decoder(scores, self.o_bias if self.bias_shares is None else self.o_bias * self.bias_shares)


class VectorMethod(MetricMethod[MetricSettingsT, MemoryT, ScoresT], Generic[MetricSettingsT, MemoryT, ScoresT]):
    """A metric method that encodes each sentence alone, so that a tagger keeps its memory and encodes only queries.

    Support and query of a training episode are encoded together.
    """

    @abstractmethod
    def memory_of(self, support: SupportSet, words: WordVectors) -> MemoryT:
        """Return the memory of a support set, given its encoded words."""

    @abstractmethod
    def loss(self, memory: MemoryT, words: WordVectors, gold: Sequence[Sentence]) -> Tensor:
        """Return the loss of a query, given its encoded words."""

    @override
    def remember(self, support: SupportSet) -> MemoryT:
        return self.memory_of(support, self.encoder(support.sentences))

    @override
    def episode_loss(self, episode: Episode) -> Tensor:
        words = self.encoder([*episode.support.sentences, *episode.query])
        support, query = words.split(len(episode.support.sentences))
        return self.loss(self.memory_of(episode.support, support), query, episode.query)

    @override
    def pool_loss(self, pool: Pool) -> Tensor:
        words, _ = self.encoder.without_padding(pool.sentences)
        losses = [
            self.loss(self.memory_of(full.support, words.take(part.support)), words.take(part.query), full.query)
            for part, full in zip(pool.episodes, pool.full_episodes(), strict=True)
        ]
        return torch.stack(losses).mean()


class SpanMethod(VectorMethod[SpanSettingsT, SpanMemory, SpanScores], Generic[SpanSettingsT]):
    """A method that scores candidate spans; a resolver chooses among overlapping ones."""

    @abstractmethod
    def logits(self, memory: SpanMemory, words: WordVectors) -> list[SpanLogits]:
        """Score the candidate spans of each sentence, given its encoded words."""

    def training_logits(self, memory: SpanMemory, words: WordVectors) -> list[SpanLogits]:
        """Return the logits that the loss is computed of; by default the same as for tagging."""
        return self.logits(memory, words)

    @abstractmethod
    def resolver(self) -> Resolver:
        """Return the resolver of conflicts between overlapping spans."""

    @override
    def scores(self, memory: SpanMemory, sentences: Sequence[Sentence]) -> list[SpanScores]:
        return [
            SpanScores(
                sentence.labels,
                sentence.bounds,
                sentence.logits.cpu().numpy(),
                None if sentence.evidence is None else sentence.evidence.cpu().numpy(),
            )
            for sentence in self.logits(memory, self.encoder(sentences))
        ]

    @override
    def loss(self, memory: SpanMemory, words: WordVectors, gold: Sequence[Sentence]) -> Tensor:
        return span_loss(self.training_logits(memory, words), gold)

    @override
    def decoder(self, support: SupportSet) -> SpanDecoder:
        return SpanDecoder(self.resolver())

    @override
    def nested_decoder(self) -> SpanDecoder:
        return SpanDecoder(NESTED)

    @override
    def with_longest(self, memory: SpanMemory, words: int) -> SpanMemory:
        return replace(memory, longest=max(words, self.settings.longest))

    @override
    def explained(self, memory: SpanMemory, scores: SpanScores, spans: list[ScoredSpan]) -> list[ScoredSpan]:
        """Add the support spans that weigh most, by the softmax of their similarities to each span."""
        return with_evidence(spans, scores, memory.label_rows, memory.label_spans)
