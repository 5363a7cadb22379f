"""ESD: spans of the query are matched with spans of the support set, class by class.

Wang et al., "An Enhanced Span-based Decomposition Method for Few-Shot Sequence Labeling", NAACL 2022.

Every span of up to eight words is a candidate. Spans are enhanced by attention within their sentence and
between query and support, each query span is matched with class prototypes made for it alone, and Beam
Soft-NMS settles which of the overlapping matches stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from spanshot.decode.conflicts import Resolver, resolver
from spanshot.decode.evidence import with_evidence
from spanshot.decode.scores import Bounds, SpanScores
from spanshot.errors import ConfigError
from spanshot.research.learning.metric import MetricSettings, SpanMethod
from spanshot.research.nn.attention import SpanAttention
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.label_names import in_words
from spanshot.research.nn.spans import SpanHead, SpanVectors, bounds_up_to, support_bounds
from spanshot.research.nn.support_spans import SpanMemory, span_memory
from spanshot.types import ScoredSpan, Sentence, SupportSet


@dataclass(frozen=True)
class EsdSettings(MetricSettings):
    """ESD's settings; the defaults are the paper's for data without nested entities."""

    size: int = 100
    """Length of a span's vector (d in the paper)."""
    longest: int = 8
    """Most words that a candidate span may have (L)."""
    dropout: float = 0.1
    """Dropout in the span head and the attention modules."""
    isa: bool = True
    """Intra span attention: a span sees the other spans of its sentence."""
    csa: bool = True
    """Cross span attention: query spans see the support's spans, and the other way round."""
    insa: bool = True
    """Instance span attention: a class is the attended mean of its spans; off, their plain mean."""
    scaled: bool = True
    """Divide the dot products of instance and prototypical attention, and squared distances, by the square root
    of ``size``; off, they are as the paper writes them."""
    o_partition: bool = True
    """Split O into spans outside, inside and across entities; off, O is one class."""
    o_spans: int = 0
    """Most O spans kept from a support set for each part of O, evenly spread; 0 keeps all."""
    label_names: bool = False
    """Count a label's name, as words, as one more example of it. Not in the paper."""
    span_prior: bool = False
    """Learn, too, what is an entity at all, whatever its label, and add that to the scores. Not in the paper."""
    refine: str = "bsnms"
    """How overlapping spans are settled: none, greedy, soft_nms, beam or bsnms."""
    beam: int = 5
    """Beam width (b) of beam and bsnms."""
    overlap: float = 1e-5
    """From which overlap (intersection over union) on a span is decayed (k)."""
    decay: float = 1e-5
    """By which factor it is decayed (u)."""
    threshold: float = 0.1
    """The decayed score that a span must exceed to be kept (delta)."""

    def __post_init__(self) -> None:
        if self.size < 1 or self.longest < 1:
            raise ConfigError(f"size and longest must be at least 1; found {self.size} and {self.longest}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in 0..1; found {self.dropout}")
        if self.o_spans < 0:
            raise ConfigError(f"o_spans must be 0 (all) or more; found {self.o_spans}")
        self.resolver()

    def resolver(self) -> Resolver:
        """The refining step that these settings describe."""
        return resolver(self.refine, width=self.beam, overlap=self.overlap, decay=self.decay, threshold=self.threshold)


class Esd(SpanMethod):
    """ESD, and what was chosen where its paper leaves a choice.

    Where the paper is terse: the span head has two layers with GELU; intra and cross span attention have
    learned projections, scaled dot products, and a residual with norm of their own before the feed-forward
    part; distances are squared; instance and prototypical span attention score by dot product, as the paper
    writes it (its authors' code sums the tanh of the element-wise product, which has a lower dev F1 and costs more).
    Departures, chosen by dev F1 (docs/results.md): ``scaled``; for speed: ``o_spans`` may thin out the support's O
    spans, and dropout acts on words and in the feed-forward parts only. Padding is masked everywhere.
    """

    name = "esd"
    Settings = EsdSettings

    def __init__(self, encoder: Encoder, settings: EsdSettings) -> None:
        super().__init__(encoder, settings)
        self.settings: EsdSettings = settings
        self.span_head = SpanHead(encoder.size, settings.size, settings.dropout)
        self.intra = SpanAttention(settings.size, settings.dropout) if settings.isa else None
        self.cross = SpanAttention(settings.size, settings.dropout) if settings.csa else None
        self.prior = nn.Linear(settings.size, 1) if settings.span_prior else None
        self.reads_label_names = settings.label_names  # type: ignore[misc]

    def resolver(self) -> Resolver:  # noqa: D102
        return self.settings.resolver()

    def remember(self, support: SupportSet, words: WordVectors) -> SpanMemory:  # noqa: D102
        bounds = support_bounds(support, self.settings.longest)
        spans = self.span_vectors(words, bounds)
        names = self._name_vectors(support.labels) if self.settings.label_names else None
        return span_memory(
            support,
            bounds,
            spans.vectors,
            o_partition=self.settings.o_partition,
            o_spans=self.settings.o_spans,
            names=names,
        )

    def _name_vectors(self, labels: Sequence[str]) -> Tensor:
        """The labels' names as spans of their own. [labels, size]"""
        names = [Sentence(tuple(in_words(label).split())) for label in labels]
        whole = [np.array([[0, len(name)]]) for name in names]
        return self.span_vectors(self.encoder(names), whole).vectors[:, 0]

    def scores(self, memory: SpanMemory, words: WordVectors) -> list[SpanScores]:  # noqa: D102
        bounds = [bounds_up_to(length, memory.longest or self.settings.longest) for length in words.lengths]
        plain: SpanVectors = self.span_head(words, bounds)
        query = self._enhanced(plain)
        logits, near = self._match(memory, query.vectors, query.mask)
        if self.prior is not None:
            sure = self.prior(plain.vectors)  # [n, spans, 1]; of plain spans, which a warm start knows, too
            prior = [nn.functional.logsigmoid(-sure), nn.functional.logsigmoid(sure).expand_as(logits[..., 1:])]
            logits = logits + torch.cat(prior, dim=-1)
        sizes = [len(own) for own in bounds]
        parts = torch.split(logits[query.mask], sizes)
        evidence = torch.split(near[query.mask], sizes)
        return [SpanScores(memory.labels, *own) for own in zip(bounds, parts, evidence, strict=True)]

    def explained(self, memory: SpanMemory, scores: SpanScores, found: list[ScoredSpan]) -> list[ScoredSpan]:
        """By the weights of instance span attention, which are those of the prototype; without it, all alike."""
        return with_evidence(found, scores, memory.label_rows, memory.label_spans)

    def span_vectors(self, words: WordVectors, bounds: Sequence[Bounds]) -> SpanVectors:
        """Span initialisation and intra span attention."""
        return self._enhanced(self.span_head(words, bounds))

    def _enhanced(self, spans: SpanVectors) -> SpanVectors:
        if self.intra is None:
            return spans
        return SpanVectors(self.intra(spans.vectors, spans.vectors, spans.mask), spans.mask, spans.bounds)

    def match(self, memory: SpanMemory, query: Tensor, mask: Tensor) -> Tensor:
        """Scores of query spans [n, spans, size] for O and the labels: [n, spans, 1 + labels]."""
        return self._match(memory, query, mask)[0]

    def _match(self, memory: SpanMemory, query: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The same, and how near query spans are to the labels' support spans: [n, spans, those spans]."""
        support = memory.vectors.unsqueeze(0)  # [1, support spans, size]; each query sentence has its own after CSA
        if self.cross is not None:
            support, query = self.cross(support, query, mask), self.cross(query, support)
        scale = self.settings.size**-0.5 if self.settings.scaled else 1.0
        # Split, not sliced row by row: the gradient of a slice is as large as the whole.
        sizes = [rows.stop - rows.start for rows in (*memory.label_rows, *memory.o_rows)]
        members = torch.split(support, sizes, dim=1)
        affinity = query @ support.transpose(1, 2) * scale if self.settings.insa else None
        if affinity is None:
            prototypes = [own.mean(1, keepdim=True).expand_as(query) for own in members]
        else:  # each [n, spans, size]
            near_members = torch.split(affinity, sizes, dim=2)
            prototypes = [near.softmax(-1) @ own for near, own in zip(near_members, members, strict=True)]

        labels = len(memory.labels)
        columns = [_nearness(query, prototype) for prototype in prototypes[:labels]]
        if memory.o_rows:
            parts = torch.stack(prototypes[labels:], dim=2)  # [n, spans, parts, size]
            o_column = _nearness(query, _attend(query, parts, scale))
        else:
            o_column = torch.full_like(columns[0], -torch.inf)
        ends = memory.label_rows[-1].stop
        near = query.new_zeros(*query.shape[:2], ends) if affinity is None else affinity[:, :, :ends].detach()
        return torch.stack([o_column, *columns], dim=-1) * scale, near


def _nearness(spans: Tensor, prototypes: Tensor) -> Tensor:
    """Negated squared distance."""
    return -(spans - prototypes).square().sum(-1)


def _attend(query: Tensor, parts: Tensor, scale: float) -> Tensor:
    """Each query span [n, spans, size] attends to its own parts [n, spans, parts, size]."""
    weights = ((query.unsqueeze(2) * parts).sum(-1) * scale).softmax(-1)  # [n, spans, parts]
    return (weights.unsqueeze(-1) * parts).sum(2)
