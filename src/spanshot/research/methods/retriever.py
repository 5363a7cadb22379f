"""Retriever: a span has the label of the support span that is most like it.

Yu et al., "Few-Shot Intent Classification and Slot Filling with Retrieved Examples", NAACL 2021.

Spans of the query are compared with spans of the support; each takes the label of the nearest, and a beam search
settles overlaps. Training is by batched softmax: of the similarity to all support spans, that to spans of the
right label should have the largest share. Departures: the span head has two layers; spans are alike by their
cosine, since in a bare dot product the length of vectors decides (docs/results.md); spans outside of entities are
a class that can be retrieved, in place of a threshold on similarity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spanshot.decode.conflicts import BeamSearch, Resolver
from spanshot.decode.scores import SpanScores
from spanshot.errors import ConfigError
from spanshot.research.learning.metric import MetricSettings, SpanMethod
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.spans import SpanHead, SpanMemory, bounds_up_to, span_memory
from spanshot.types import SupportSet


@dataclass(frozen=True)
class RetrieverSettings(MetricSettings):
    """Settings of Retriever."""

    size: int = 100
    """Length of a span's vector."""
    longest: int = 8
    """Most words that a candidate span may have."""
    dropout: float = 0.1
    """Dropout on words before the span head."""
    temperature: float = 0.1
    """What cosines are divided by."""
    o_spans: int = 0
    """Most spans outside of entities kept from a support set, evenly spread; 0 keeps all."""
    beam: int = 5
    """Beam width of the search for spans that do not overlap."""

    def __post_init__(self) -> None:
        if min(self.size, self.longest, self.beam) < 1:
            raise ConfigError("size, longest and beam must be at least 1")
        if self.temperature <= 0:
            raise ConfigError(f"temperature must be above 0; found {self.temperature}")
        if self.o_spans < 0 or not 0 <= self.dropout < 1:
            raise ConfigError("o_spans must be 0 (all) or more, and dropout lie in 0..1")


class Retriever(SpanMethod):
    """Retriever."""

    name = "retriever"
    Settings = RetrieverSettings

    def __init__(self, encoder: Encoder, settings: RetrieverSettings) -> None:
        super().__init__(encoder, settings)
        self.settings: RetrieverSettings = settings
        self.span_head = SpanHead(encoder.size, settings.size, hidden=2 * settings.size, word_dropout=settings.dropout)

    def resolver(self) -> Resolver:  # noqa: D102
        return BeamSearch(width=self.settings.beam)

    def remember(self, support: SupportSet, words: WordVectors) -> SpanMemory:  # noqa: D102
        longest, o_spans = self.settings.longest, self.settings.o_spans
        return span_memory(support, words, self.span_head, longest=longest, o_partition=False, o_spans=o_spans)

    def scores(self, memory: SpanMemory, words: WordVectors) -> list[SpanScores]:  # noqa: D102
        return self._scored(memory, words, lambda alike: alike.max(1).values)

    def training_scores(self, memory: SpanMemory, words: WordVectors) -> list[SpanScores]:
        """Batched softmax: a class is scored by all its spans together."""
        return self._scored(memory, words, lambda alike: alike.logsumexp(1))

    def _scored(self, memory: SpanMemory, words: WordVectors, pool: Callable[[Tensor], Tensor]) -> list[SpanScores]:
        bounds = [bounds_up_to(length, memory.longest or self.settings.longest) for length in words.lengths]
        query = self.span_head(words, bounds)
        spans, support = (F.normalize(own, dim=1) for own in (query.vectors[query.mask], memory.vectors))
        alike = spans @ support.T / self.settings.temperature  # [query spans, support spans]
        columns = [pool(alike[:, rows]) for rows in (*memory.o_rows, *memory.label_rows)]
        if not memory.o_rows:
            columns.insert(0, torch.full_like(columns[0], -torch.inf))
        sizes = [len(own) for own in bounds]
        parts = torch.split(torch.stack(columns, dim=1), sizes)
        evidence = torch.split(alike[:, : memory.label_rows[-1].stop].detach(), sizes)
        return [SpanScores(memory.labels, *own) for own in zip(bounds, parts, evidence, strict=True)]
