"""Retriever: a span has the label of the most similar support span.

Yu et al., "Few-Shot Intent Classification and Slot Filling with Retrieved Examples", NAACL 2021.

Each query span takes the label of the most similar support span, and a beam search resolves overlaps. The training
loss is a batched softmax over the similarities to all support spans, of which those with the right label should have
the largest share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from spanshot.decode.conflicts import BeamSearch, Resolver
from spanshot.errors import ConfigError
from spanshot.research.learning.metric import SpanMethod, SpanSettings
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.loss import SpanLogits
from spanshot.research.nn.spans import SpanHead, SpanMemory, bounds_up_to, span_memory
from spanshot.types import SupportSet


@dataclass(frozen=True)
class RetrieverSettings(SpanSettings):
    """Settings of Retriever."""

    temperature: float = 0.1
    """Divisor of cosines."""
    beam: int = 5
    """Width of the beam search for spans that do not overlap."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beam < 1:
            raise ConfigError(f"beam must be at least 1; found {self.beam}")
        if self.temperature <= 0:
            raise ConfigError(f"temperature must be above 0; found {self.temperature}")


class Retriever(SpanMethod[RetrieverSettings]):
    """Retriever.

    Departures: the span head has two layers; the similarity is the cosine, because the dot product depends mainly on
    the length of vectors (docs/results.md); spans outside of entities are a class of their own, in place of a threshold
    on similarity.
    """

    name = "retriever"
    Settings = RetrieverSettings

    def __init__(self, encoder: Encoder, settings: RetrieverSettings) -> None:
        super().__init__(encoder, settings)
        self.span_head = SpanHead(encoder.size, settings.size, hidden=2 * settings.size, word_dropout=settings.dropout)

    @override
    def resolver(self) -> Resolver:
        return BeamSearch(width=self.settings.beam)

    @override
    def memory_of(self, support: SupportSet, words: WordVectors) -> SpanMemory:
        longest, o_spans = self.settings.longest, self.settings.o_spans
        return span_memory(support, words, self.span_head, longest=longest, o_partition=False, o_spans=o_spans)

    @override
    def logits(self, memory: SpanMemory, words: WordVectors) -> list[SpanLogits]:
        return self._scored(memory, words, lambda similarities: similarities.max(1).values)

    @override
    def training_logits(self, memory: SpanMemory, words: WordVectors) -> list[SpanLogits]:
        """Score each class by all of its spans, for the batched softmax."""
        return self._scored(memory, words, lambda similarities: similarities.logsumexp(1))

    def _scored(self, memory: SpanMemory, words: WordVectors, pool: Callable[[Tensor], Tensor]) -> list[SpanLogits]:
        bounds = [bounds_up_to(length, memory.longest or self.settings.longest) for length in words.lengths]
        query = self.span_head(words, bounds)
        spans, support = (F.normalize(vectors, dim=1) for vectors in (query.vectors[query.mask], memory.vectors))
        similarities = spans @ support.T / self.settings.temperature  # [query spans, support spans]
        columns = [pool(similarities[:, rows]) for rows in (*memory.o_rows, *memory.label_rows)]
        if not memory.o_rows:
            columns.insert(0, torch.full_like(columns[0], -torch.inf))
        sizes = [len(spans) for spans in bounds]
        parts = torch.split(torch.stack(columns, dim=1), sizes)
        evidence = torch.split(similarities[:, : memory.label_rows[-1].stop].detach(), sizes)
        return [SpanLogits(memory.labels, *values) for values in zip(bounds, parts, evidence, strict=True)]
