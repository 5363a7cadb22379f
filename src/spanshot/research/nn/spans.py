"""Words to spans: which stretches of a sentence are candidates, and their vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from spanshot.decode.scores import Bounds
from spanshot.research.nn.encoder import WordVectors
from spanshot.types import Span, SupportSet


@lru_cache(maxsize=4096)
def bounds_up_to(words: int, longest: int) -> Bounds:
    """All (start, end) of at most ``longest`` words, by start and then by length. [spans, 2]"""
    pairs = [(s, e) for s in range(words) for e in range(s + 1, min(s + longest, words) + 1)]
    bounds = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    bounds.setflags(write=False)
    return bounds


def with_longer(bounds: Bounds, longest: int, spans: Iterable[Span]) -> Bounds:
    """The same candidates and, after them, the given spans that are longer than ``longest`` words."""
    longer = sorted({(span.start, span.end) for span in spans if len(span) > longest})
    return np.concatenate([bounds, np.array(longer, dtype=np.int64)]) if longer else bounds


def support_bounds(support: SupportSet, longest: int) -> list[Bounds]:
    """Candidates of each support sentence: all up to ``longest`` words, and what is marked in it, however long."""
    return [with_longer(bounds_up_to(len(s), longest), longest, s.spans) for s in support.sentences]


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
        most = max(len(own) for own in bounds)
        index = np.zeros((len(bounds), most, 2), dtype=np.int64)
        mask = np.zeros((len(bounds), most), dtype=bool)
        offset = 0
        for row, (own, length) in enumerate(zip(bounds, words.lengths, strict=True)):
            index[row, : len(own)] = own + offset
            index[row, : len(own), 1] -= 1
            mask[row, : len(own)] = True
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
