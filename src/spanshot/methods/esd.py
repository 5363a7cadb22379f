"""ESD: spans of the query are matched with spans of the support set, class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spanshot.decode.conflicts import Resolver, resolver
from spanshot.decode.scores import Bounds, SpanScores
from spanshot.errors import ConfigError
from spanshot.methods.base import MetricMethod
from spanshot.nn.attention import SpanAttention
from spanshot.nn.encoder import Encoder, WordVectors
from spanshot.nn.spans import SpanHead, SpanVectors, bounds_up_to, with_longer
from spanshot.types import Span, SupportSet


@dataclass(frozen=True)
class EsdSettings:
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


@dataclass(frozen=True)
class SpanMemory:
    """The support's spans, grouped by class."""

    labels: tuple[str, ...]
    vectors: Tensor  # [spans, size]
    label_rows: tuple[slice, ...]
    """Where the spans of each label lie in ``vectors``."""
    o_rows: tuple[slice, ...]
    """The same for the parts of O that have any span: three at most, none for a support without O spans."""


class Esd(MetricMethod[SpanMemory]):
    """Wang et al., "An Enhanced Span-based Decomposition Method for Few-Shot Sequence Labeling", NAACL 2022.

    Every span of up to eight words is a candidate. Spans are enhanced by attention within their sentence and
    between query and support, each query span is matched with class prototypes made for it alone, and Beam
    Soft-NMS settles which of the overlapping matches stay.

    Where the paper is terse: the span head has two layers with GELU; intra and cross span attention have
    learned projections, scaled dot products, and a residual with norm of their own before the feed-forward
    part; distances are squared; instance and prototypical span attention score by dot product, as the paper
    writes it (its authors' code sums the tanh of the element-wise product, which on a CPU costs more than the
    encoder). Departures, chosen by dev F1 (docs/results.md): ``scaled``; for speed: ``o_spans`` may thin out the
    support's O spans, and dropout acts on words and in the feed-forward parts only. Padding is masked everywhere.
    """

    name = "esd"
    Settings = EsdSettings

    def __init__(self, encoder: Encoder, settings: EsdSettings) -> None:
        super().__init__(encoder, settings)
        self.settings: EsdSettings = settings
        self.span_head = SpanHead(encoder.size, settings.size, settings.dropout)
        self.intra = SpanAttention(settings.size, settings.dropout) if settings.isa else None
        self.cross = SpanAttention(settings.size, settings.dropout) if settings.csa else None

    def resolver(self) -> Resolver:  # noqa: D102
        return self.settings.resolver()

    def remember(self, support: SupportSet, words: WordVectors) -> SpanMemory:  # noqa: D102
        longest = self.settings.longest
        bounds = [with_longer(bounds_up_to(len(s), longest), longest, s.spans) for s in support.sentences]
        spans = self.span_vectors(words, bounds)
        width = spans.vectors.shape[1]
        places = _places_by_class(support, bounds, width, self.settings.o_partition)
        limit = self.settings.o_spans
        o_places = [_evenly(own, limit) for own in places.parts_of_o if own]
        slices, rows = _lay_end_to_end([*places.labels, *o_places])
        vectors = spans.vectors.flatten(0, 1)[torch.tensor(rows, device=spans.vectors.device)]
        count = len(support.labels)
        return SpanMemory(support.labels, vectors, slices[:count], slices[count:])

    def scores(self, memory: SpanMemory, words: WordVectors) -> list[SpanScores]:  # noqa: D102
        bounds = [bounds_up_to(length, self.settings.longest) for length in words.lengths]
        query = self.span_vectors(words, bounds)
        logits = self.match(memory, query.vectors, query.mask)  # [sentences, spans, 1 + labels]
        parts = torch.split(logits[query.mask], [len(own) for own in bounds])
        return [SpanScores(memory.labels, own, part) for own, part in zip(bounds, parts, strict=True)]

    def span_vectors(self, words: WordVectors, bounds: Sequence[Bounds]) -> SpanVectors:
        """Span initialisation and intra span attention."""
        spans: SpanVectors = self.span_head(words, bounds)
        if self.intra is None:
            return spans
        return SpanVectors(self.intra(spans.vectors, spans.vectors, spans.mask), spans.mask, spans.bounds)

    def match(self, memory: SpanMemory, query: Tensor, mask: Tensor) -> Tensor:
        """Scores of query spans [n, spans, size] for O and the labels: [n, spans, 1 + labels]."""
        support = memory.vectors.unsqueeze(0)  # [1, support spans, size]; each query sentence has its own after CSA
        if self.cross is not None:
            support, query = self.cross(support, query, mask), self.cross(query, support)
        scale = self.settings.size**-0.5 if self.settings.scaled else 1.0
        affinity = query @ support.transpose(1, 2) * scale if self.settings.insa else None

        def prototypes(rows: slice) -> Tensor:
            members = support[:, rows]
            if affinity is None:
                return members.mean(1, keepdim=True).expand_as(query)
            return affinity[:, :, rows].softmax(-1) @ members  # [n, spans, size]

        columns = [_nearness(query, prototypes(rows)) for rows in memory.label_rows]
        if memory.o_rows:
            parts = torch.stack([prototypes(rows) for rows in memory.o_rows], dim=2)  # [n, spans, parts, size]
            o_column = _nearness(query, _attend(query, parts, scale))
        else:
            o_column = torch.full_like(columns[0], -torch.inf)
        return torch.stack([o_column, *columns], dim=-1) * scale


def _nearness(spans: Tensor, prototypes: Tensor) -> Tensor:
    """Negated squared distance."""
    return -(spans - prototypes).square().sum(-1)


def _attend(query: Tensor, parts: Tensor, scale: float) -> Tensor:
    """Each query span [n, spans, size] attends to its own parts [n, spans, parts, size]."""
    weights = ((query.unsqueeze(2) * parts).sum(-1) * scale).softmax(-1)  # [n, spans, parts]
    return (weights.unsqueeze(-1) * parts).sum(2)


@dataclass(frozen=True)
class _Places:
    labels: list[list[int]]
    parts_of_o: list[list[int]]


def _places_by_class(support: SupportSet, bounds: Sequence[Bounds], width: int, o_partition: bool) -> _Places:
    """Where the spans of each class stand among all spans, were all sentences padded to ``width`` spans."""
    labels: dict[str, list[int]] = {label: [] for label in support.labels}
    parts: list[list[int]] = [[], [], []] if o_partition else [[]]
    for row, (sentence, own) in enumerate(zip(support.sentences, bounds, strict=True)):
        at = {(start, end): row * width + number for number, (start, end) in enumerate(own.tolist())}
        for span in sentence.spans:
            labels[span.label].append(at[span.start, span.end])
        marked = {(span.start, span.end) for span in sentence.spans}
        part_of = _parts_of_o(own, sentence.spans) if o_partition else np.zeros(len(own), dtype=np.int64)
        for (place, number), part in zip(at.items(), part_of.tolist(), strict=True):
            if place not in marked:
                parts[part].append(number)
    return _Places(list(labels.values()), parts)


def _parts_of_o(bounds: Bounds, spans: Sequence[Span]) -> np.ndarray:
    """0 for spans that touch no entity (O1), 1 for those inside one (O2), 2 for the others (O3). [spans]"""
    if not spans:
        return np.zeros(len(bounds), dtype=np.int64)
    marked = np.array([(span.start, span.end) for span in spans])  # [entities, 2]
    start, end = bounds[:, :1], bounds[:, 1:]
    apart = ((end <= marked[:, 0]) | (start >= marked[:, 1])).all(axis=1)
    inside = ((start >= marked[:, 0]) & (end <= marked[:, 1])).any(axis=1)
    return np.where(apart, 0, np.where(inside, 1, 2))


def _evenly(rows: list[int], limit: int) -> list[int]:
    """At most ``limit`` of the rows, spread evenly over them; all of them where ``limit`` is 0."""
    if not limit or len(rows) <= limit:
        return rows
    return [rows[number * len(rows) // limit] for number in range(limit)]


def _lay_end_to_end(groups: Sequence[list[int]]) -> tuple[tuple[slice, ...], list[int]]:
    slices: list[slice] = []
    rows: list[int] = []
    for group in groups:
        slices.append(slice(len(rows), len(rows) + len(group)))
        rows.extend(group)
    return tuple(slices), rows
