"""ESD: query spans are matched with support spans, class by class.

Wang et al., "An Enhanced Span-based Decomposition Method for Few-Shot Sequence Labeling", NAACL 2022.

Every span of up to eight words is a candidate. Spans are enhanced by attention within their sentence and between query
and support. Each query span is compared with class prototypes made for it alone, and Beam Soft-NMS chooses among
overlapping matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from typing_extensions import override

from spanshot.decode.conflicts import Resolver, resolver
from spanshot.decode.scores import Bounds
from spanshot.decode.spans import SpanDecoder
from spanshot.errors import ConfigError
from spanshot.research.learning.metric import SpanMethod, SpanSettings
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.loss import SpanLogits
from spanshot.research.nn.spans import (
    PlainSpanAttention,
    SpanAttention,
    SpanHead,
    SpanMemory,
    SpanVectors,
    bounds_up_to,
    span_memory,
)
from spanshot.types import SupportSet

SPAN_HEADS = ("linear", "narrow", "wide")
ATTENTIONS = ("plain", "projected", "released")
SIMILARITIES = ("dot", "tanh")
DISTANCES = ("squared", "euclidean")


@dataclass(frozen=True)
class EsdSettings(SpanSettings):
    """ESD's settings. Where paper, released code and this implementation differ, the help says who has which value."""

    dropout: float = 0.1
    """Dropout in the attention modules, and in the hidden layer of a wide span head."""
    vector_dropout: float = 0.1
    """Dropout on word vectors before the span head (paper: 0.1; released code: 0.5)."""
    span_head: str = "linear"
    """From word vectors to span vectors: linear, one linear map (paper, ours); narrow, a hidden layer of twice size;
    wide, a hidden layer as wide as the encoder (released code)."""
    attention: str = "projected"
    """Form of intra and cross span attention: plain, the paper's equations; projected, with query, key and value
    projections and a second residual connection (ours); released, the same with an output projection."""
    feed_width: int = 1
    """Width of the hidden feed-forward layers, as a multiple of size (released code: 4)."""
    identity_start: bool = True
    """Before training, attention changes nothing: the last weights of its residual branches are 0 (ours); off: they are
    random (paper and released code)."""
    isa: bool = True
    """Intra span attention: a span attends to the other spans of its sentence."""
    csa: bool = True
    """Cross span attention: query spans attend to support spans and the other way round."""
    insa: bool = True
    """Instance span attention: a class prototype is the attention-weighted mean of its spans; off: their plain mean."""
    similarity: str = "dot"
    """Attention weights of instance and prototypical span attention: dot, the dot product (paper, ours); tanh, the sum
    of the tanh of the element-wise product (released code)."""
    distance: str = "squared"
    """Distance of spans to prototypes: squared (released code, ours) or euclidean (paper)."""
    scaled: bool = True
    """Divide dot products and distances by the square root of size (ours); off: paper and released code. Projected
    attention is always scaled."""
    o_partition: bool = True
    """Split O into spans outside, inside and across entities; off: O is one class."""
    refine: str = "bsnms"
    """How conflicts between overlapping spans are resolved: none, greedy, soft_nms, beam or bsnms."""
    beam: int = 5
    """Beam width (b) of beam and bsnms."""
    beam_starts: int = 0
    """Number of best spans that bsnms starts from (0: the beam width, as in the paper; released code: 1)."""
    overlap: float = 1e-5
    """Overlap (intersection over union) from which a span's score is decayed (k)."""
    decay: float = 1e-5
    """Factor of the decay (u)."""
    threshold: float = 0.1
    """Decayed score that a span must exceed to be kept (delta)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feed_width < 1:
            raise ConfigError(f"feed_width must be at least 1; found {self.feed_width}")
        if not 0 <= self.vector_dropout < 1:
            raise ConfigError(f"vector_dropout must be from 0 to below 1; found {self.vector_dropout}")
        for name, choices in (
            ("span_head", SPAN_HEADS),
            ("attention", ATTENTIONS),
            ("similarity", SIMILARITIES),
            ("distance", DISTANCES),
        ):
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} must be one of {', '.join(choices)}; found {getattr(self, name)!r}")
        self.resolver()

    def resolver(self) -> Resolver:
        """Build the resolver that these settings describe."""
        return resolver(
            self.refine,
            width=self.beam,
            overlap=self.overlap,
            decay=self.decay,
            threshold=self.threshold,
            starts=self.beam_starts,
        )


class Esd(SpanMethod[EsdSettings]):
    """ESD: spans, enhanced by attention, matched with class prototypes made for each query span.

    Departures. Three configurations differ in the heads over the encoder (parameters on BERT-base in brackets):

    - the paper's equations (``configs/*/esd.toml``, ``esd-paper.toml``) [0.32 M]: one linear map makes spans of words;
      attention has no projections; ``LayerNorm(s + FFN(attended))``; unscaled dot products; unsquared distances;
      dropout 0.1. The paper reports 2 M parameters, which these equations do not have;
    - the authors' released code (``esd-released.toml``) [1.50 M]: a hidden layer as wide as the encoder in the span
      head; attention with query, key, value and output projections, a residual connection and normalization of its own;
      feed-forward layers four times as wide; the tanh of element-wise products in instance and prototypical span
      attention; squared distances; dropout 0.5 on word vectors; Beam Soft-NMS that starts from the single best span;
    - ours, the defaults of the settings (``esd-minilm.toml``) [0.26 M]: one linear map for spans; projected attention
      without an output projection, which starts as the identity; narrow feed-forward layers; scaled dot products and
      squared distances; on SNIPS, a greedy choice among overlapping spans. Chosen by dev F1 with a small encoder
      (docs/lab-log.md).

    In all of them padding is masked; the released code passes the encoder no mask, and its span mask is off by one. The
    loss is the mean over the candidate spans of a query sentence, as in the paper, and then over sentences; the
    released code takes the mean over all spans of an episode. ``o_spans`` may thin out the support's O spans for speed.
    """

    name = "esd"
    Settings = EsdSettings

    def __init__(self, encoder: Encoder, settings: EsdSettings) -> None:
        super().__init__(encoder, settings)
        wide = settings.span_head == "wide"
        self.span_head = SpanHead(
            encoder.size,
            settings.size,
            hidden={"linear": 0, "narrow": 2 * settings.size, "wide": encoder.size}[settings.span_head],
            word_dropout=settings.vector_dropout,
            hidden_dropout=settings.dropout if wide else 0.0,
        )
        self.intra = _attention(settings) if settings.isa else None
        self.cross = _attention(settings) if settings.csa else None
        self.span_decoder = SpanDecoder(settings.resolver())

    @override
    def decoder(self, support: SupportSet) -> SpanDecoder:
        return self.span_decoder

    @override
    def resolver(self) -> Resolver:
        return self.span_decoder.resolver

    @override
    def memory_of(self, support: SupportSet, words: WordVectors) -> SpanMemory:
        return span_memory(
            support,
            words,
            self.span_vectors,
            longest=self.settings.longest,
            o_partition=self.settings.o_partition,
            o_spans=self.settings.o_spans,
        )

    @override
    def logits(self, memory: SpanMemory, words: WordVectors) -> list[SpanLogits]:
        bounds = [bounds_up_to(length, memory.longest or self.settings.longest) for length in words.lengths]
        query = self.span_vectors(words, bounds)
        logits, near = self._match(memory, query.vectors, query.mask)
        sizes = [len(spans) for spans in bounds]
        parts = torch.split(logits[query.mask], sizes)
        evidence = torch.split(near[query.mask], sizes)
        return [SpanLogits(memory.labels, *values) for values in zip(bounds, parts, evidence, strict=True)]

    def span_vectors(self, words: WordVectors, bounds: Sequence[Bounds]) -> SpanVectors:
        """Span initialization and intra span attention."""
        spans: SpanVectors = self.span_head(words, bounds)
        if self.intra is None:
            return spans
        return SpanVectors(self.intra(spans.vectors, spans.vectors, spans.mask), spans.mask, spans.bounds)

    def match(self, memory: SpanMemory, query: Tensor, mask: Tensor) -> Tensor:
        """Score query spans [n, spans, size] for O and the labels: [n, spans, 1 + labels]."""
        return self._match(memory, query, mask)[0]

    def _match(self, memory: SpanMemory, query: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same, and the similarity of query spans to the labels' support spans: [n, spans, those spans]."""
        support = memory.vectors.unsqueeze(0)  # [1, support spans, size]; each query sentence has its own after CSA
        if self.cross is not None:
            support, query = self.cross(support, query, mask), self.cross(query, support)
        scale = self.settings.size**-0.5 if self.settings.scaled else 1.0
        # Split, not sliced row by row: the gradient of a slice is as large as the whole.
        sizes = [rows.stop - rows.start for rows in (*memory.label_rows, *memory.o_rows)]
        members = torch.split(support, sizes, dim=1)
        dot = self.settings.similarity == "dot"
        affinity: Tensor | None = None
        if self.settings.insa and dot:
            affinity = query @ support.transpose(1, 2) * scale
        elif self.settings.insa:
            pairs = zip(query, support.expand(len(query), -1, -1), strict=True)
            sums = [(query_spans[:, None] * support_spans).tanh().sum(-1) for query_spans, support_spans in pairs]
            affinity = torch.stack(sums) * scale
        if affinity is None:
            prototypes = [spans.mean(1, keepdim=True).expand_as(query) for spans in members]
        else:  # each [n, spans, size]
            near_members = torch.split(affinity, sizes, dim=2)
            prototypes = [near.softmax(-1) @ spans for near, spans in zip(near_members, members, strict=True)]

        labels = len(memory.labels)
        classes = prototypes[:labels]
        if memory.o_rows:  # prototypical span attention: each query span over its own parts of O
            parts = torch.stack(prototypes[labels:], dim=2)  # [n, spans, parts, size]
            products = query.unsqueeze(2) * parts
            weights = ((products if dot else products.tanh()).sum(-1) * scale).softmax(-1)  # [n, spans, parts]
            classes = [(weights.unsqueeze(-1) * parts).sum(2), *classes]
        if self.settings.distance == "squared":
            columns = [-(query - prototype).square().sum(-1) for prototype in classes]
        else:
            columns = [-torch.linalg.vector_norm(query - prototype, dim=-1) for prototype in classes]
        if not memory.o_rows:
            columns = [torch.full_like(columns[0], -torch.inf), *columns]
        ends = memory.label_rows[-1].stop
        near = query.new_zeros(*query.shape[:2], ends) if affinity is None else affinity[:, :, :ends].detach()
        return torch.stack(columns, dim=-1) * scale, near


def _attention(settings: EsdSettings) -> nn.Module:
    if settings.attention == "plain":
        return PlainSpanAttention(
            settings.size,
            settings.dropout,
            feed_width=settings.feed_width,
            scaled=settings.scaled,
            identity_start=settings.identity_start,
        )
    return SpanAttention(
        settings.size,
        settings.dropout,
        feed_width=settings.feed_width,
        released=settings.attention == "released",
        identity_start=settings.identity_start,
    )
