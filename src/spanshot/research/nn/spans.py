"""Words to spans: the candidate spans of a sentence, their vectors, and the memory of a support set's spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from spanshot.decode.scores import Bounds
from spanshot.research.nn.encoder import WordVectors
from spanshot.types import Span, SupportSet

MAX_BATCH_WORDS = 512
"""Maximum number of words, padding included, whose spans are computed at once; bounds memory."""


@lru_cache(maxsize=4096)
def bounds_up_to(words: int, longest: int) -> Bounds:
    """Return all (start, end) of at most ``longest`` words, sorted by start, then by length. [spans, 2]"""
    pairs = [(s, e) for s in range(words) for e in range(s + 1, min(s + longest, words) + 1)]
    bounds = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    bounds.setflags(write=False)
    return bounds


@dataclass(frozen=True, slots=True)
class SpanVectors:
    """The candidate spans of several sentences, padded to the most that one of them has."""

    vectors: Tensor  # [sentences, spans, size]
    mask: Tensor  # [sentences, spans], true where there is a span
    bounds: tuple[Bounds, ...]


class SpanHead(nn.Module):
    """A span's vector from the first piece of its first word and the last piece of its last word.

    With a hidden layer, a two-layer GELU network over the two joined vectors; with ``hidden=0``, one linear map. The
    first layer is applied to words, not to spans: ``[first; last] W = first W_first + last W_last``, which saves a
    factor of the longest span's length.
    """

    def __init__(
        self, word_size: int, size: int, *, hidden: int, word_dropout: float = 0.0, hidden_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.size = size
        width = hidden or size
        self.from_first = nn.Linear(word_size, width)
        self.from_last = nn.Linear(word_size, width, bias=False)
        self.word_dropout = nn.Dropout(word_dropout)
        self.hidden_dropout = nn.Dropout(hidden_dropout)
        self.to_span = nn.Linear(hidden, size) if hidden else None

    def forward(self, words: WordVectors, bounds: Sequence[Bounds]) -> SpanVectors:
        """Return the vectors of the spans at ``bounds``, given per sentence."""
        device = words.first.device
        max_spans = max(len(spans) for spans in bounds)
        index = np.zeros((len(bounds), max_spans, 2), dtype=np.int64)
        mask = np.zeros((len(bounds), max_spans), dtype=bool)
        offset = 0
        for row, (spans, length) in enumerate(zip(bounds, words.lengths, strict=True)):
            index[row, : len(spans)] = spans + offset
            index[row, : len(spans), 1] -= 1
            mask[row, : len(spans)] = True
            offset += length
        at = torch.from_numpy(index).to(device)
        first = self.from_first(self.word_dropout(words.first))  # [all words, hidden]
        last = self.from_last(self.word_dropout(words.last))
        # A lookup as of embeddings: unlike indexing, its gradient is added up in one fixed order.
        lookup = nn.functional.embedding
        vectors = lookup(at[..., 0], first) + lookup(at[..., 1], last)  # [sentences, spans, hidden]
        if self.to_span is not None:
            vectors = self.to_span(self.hidden_dropout(nn.functional.gelu(vectors)))
        return SpanVectors(vectors, torch.from_numpy(mask).to(device), tuple(bounds))


class SpanAttention(nn.Module):
    """Projected attention, then a GELU network, each with a residual connection and layer normalization.

    ``released`` adds the extras of the authors' code: an output projection and dropout on the output of the
    network, whose hidden layer they make four times as wide (``feed_width``).
    """

    def __init__(
        self, size: int, dropout: float, *, feed_width: int = 1, released: bool = False, identity_start: bool = False
    ) -> None:
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.output = nn.Linear(size, size) if released else nn.Identity()
        self.gathered_norm = nn.LayerNorm(size)
        self.feed = _feed_forward(size, feed_width, dropout)
        self.feed_dropout = nn.Dropout(dropout if released else 0.0)
        self.norm = nn.LayerNorm(size)
        if identity_start:
            _set_to_zero(self.output if isinstance(self.output, nn.Linear) else self.value)
            _set_to_zero(self.feed[-1])

    def forward(self, spans: Tensor, others: Tensor, mask: Tensor | None = None) -> Tensor:
        """Let ``spans`` [n, a, size] attend to ``others`` [n, b, size]; ``mask`` [n, b] is true where a span exists.

        Either may have n = 1, which stands for all and is projected only once.
        """
        n = max(len(spans), len(others))
        query, key, value = (
            projected.expand(n, -1, -1) for projected in (self.query(spans), self.key(others), self.value(others))
        )
        gathered = scaled_dot_product_attention(
            query, key, value, attn_mask=None if mask is None else mask[:, None, :]
        )  # [n, a, size]
        spans = self.gathered_norm(spans + self.output(gathered))
        enhanced: Tensor = self.norm(spans + self.feed_dropout(self.feed(spans)))
        return enhanced


class PlainSpanAttention(nn.Module):
    """Attention exactly as ESD's paper writes it: ``LayerNorm(s + FFN(softmax(s Sᵀ) S))``, without projections."""

    def __init__(
        self, size: int, dropout: float, *, feed_width: int = 1, scaled: bool = False, identity_start: bool = False
    ) -> None:
        super().__init__()
        self.scale = size**-0.5 if scaled else 1.0
        self.feed = _feed_forward(size, feed_width, dropout)
        self.norm = nn.LayerNorm(size)
        if identity_start:
            _set_to_zero(self.feed[-1])

    def forward(self, spans: Tensor, others: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend as `SpanAttention.forward` does."""
        n = max(len(spans), len(others))
        query, key = (part.expand(n, -1, -1) for part in (spans, others))
        gathered = scaled_dot_product_attention(
            query, key, key, attn_mask=None if mask is None else mask[:, None, :], scale=self.scale
        )
        enhanced: Tensor = self.norm(spans + self.feed(gathered))
        return enhanced


def _feed_forward(size: int, width: int, dropout: float) -> nn.Sequential:
    hidden = width * size
    return nn.Sequential(nn.Linear(size, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, size))


def _set_to_zero(layer: nn.Module) -> None:
    """Set the weights of a layer that ends a residual branch to 0: the branch adds nothing until it is trained."""
    for weights in layer.parameters():
        nn.init.zeros_(weights)


@dataclass(frozen=True)
class SpanMemory:
    """The support's spans, grouped by class."""

    labels: tuple[str, ...]
    vectors: Tensor  # [spans, size]
    label_rows: tuple[slice, ...]
    """The rows of each label's spans in ``vectors``."""
    o_rows: tuple[slice, ...]
    """The same for the parts of O that have spans: at most three, none for a support set without O spans."""
    longest: int = 0
    """Maximum length of a query's candidate spans, in words (0: the method's setting)."""
    label_spans: tuple[tuple[int, Span], ...] = ()
    """The labels' spans in the order of ``vectors``: number of the sentence, and span."""


def span_memory(
    support: SupportSet,
    words: WordVectors,
    span_vectors: Callable[[WordVectors, Sequence[Bounds]], SpanVectors],
    *,
    longest: int,
    o_partition: bool,
    o_spans: int,
) -> SpanMemory:
    """Sort the spans of a support set, of which the encoded words are given, by class.

    The candidates of a sentence are all spans of up to ``longest`` words, and longer ones that are marked.
    ``o_partition`` splits O into spans that touch no entity, lie inside one, or neither. At most ``o_spans`` of each
    part are kept, evenly spread; all for 0.
    """
    bounds = []
    for sentence in support.sentences:
        candidates = bounds_up_to(len(sentence.words), longest)
        longer = sorted({(s.start, s.end) for s in sentence.spans if s.end - s.start > longest})
        bounds.append(np.concatenate([candidates, np.array(longer, dtype=np.int64)]) if longer else candidates)
    vectors: list[Tensor] = [words.first] * len(bounds)
    for numbers, batch in words.batches(MAX_BATCH_WORDS):
        spans = span_vectors(batch, [bounds[number] for number in numbers])
        # Split, not sliced row by row: the gradient of a slice is as large as the whole.
        parts = torch.split(spans.vectors[spans.mask], [len(bounds[number]) for number in numbers])
        for number, part in zip(numbers, parts, strict=True):
            vectors[number] = part  # [spans of the sentence, size]
    members: list[list[int]] = [[] for _ in support.labels]
    o_members: list[list[int]] = [[], [], []] if o_partition else [[]]
    origins: list[list[tuple[int, Span]]] = [[] for _ in support.labels]
    count = 0
    for number, (sentence, candidates) in enumerate(zip(support.sentences, bounds, strict=True)):
        at = {(start, end): count + place for place, (start, end) in enumerate(candidates.tolist())}
        for span in sentence.spans:
            label = support.labels.index(span.label)
            members[label].append(at[span.start, span.end])
            origins[label].append((number, span))
        marked = {(span.start, span.end) for span in sentence.spans}
        part_of = _parts_of_o(candidates, sentence.spans) if o_partition else np.zeros(len(candidates), dtype=np.int64)
        for (place, row), o_part in zip(at.items(), part_of.tolist(), strict=True):
            if place not in marked:
                o_members[o_part].append(row)
        count += len(candidates)
    for rows in filter(None, o_members):
        n_kept = min(o_spans or len(rows), len(rows))
        members.append([rows[number * len(rows) // n_kept] for number in range(n_kept)])
    order = torch.tensor([row for rows in members for row in rows], device=words.first.device)
    ends = np.cumsum([len(rows) for rows in members]).tolist()
    slices = tuple(slice(end - len(rows), end) for rows, end in zip(members, ends, strict=True))
    labels = len(support.labels)
    return SpanMemory(
        support.labels,
        torch.cat(vectors)[order],
        slices[:labels],
        slices[labels:],
        label_spans=tuple(origin for label_origins in origins for origin in label_origins),
    )


def _parts_of_o(bounds: Bounds, spans: Sequence[Span]) -> np.ndarray:
    """0 for spans that touch no entity (O1), 1 for those inside one (O2), 2 for the others (O3). [spans]"""
    if not spans:
        return np.zeros(len(bounds), dtype=np.int64)
    marked = np.array([(span.start, span.end) for span in spans])  # [entities, 2]
    start, end = bounds[:, :1], bounds[:, 1:]
    apart = ((end <= marked[:, 0]) | (start >= marked[:, 1])).all(axis=1)
    inside = ((start >= marked[:, 0]) & (end <= marked[:, 1])).any(axis=1)
    return np.where(apart, 0, np.where(inside, 1, 2))
