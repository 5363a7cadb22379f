"""Words to span vectors of unit length, and label names to the prior of a linear head."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTHS = 16
"""Widths with an embedding of their own; wider spans share the last."""
PRIOR_SCALE = 5.0  # unit vectors need weights of this size to be told apart
FIRST_BIAS = -4.0  # entities are rare


class UnitSpans(nn.Module):
    """A span's vector from the first piece of its first word, the last piece of its last word, and its width."""

    def __init__(self, word_size: int, size: int, hidden: int) -> None:
        super().__init__()
        self.start = nn.Linear(word_size, hidden)
        self.end = nn.Linear(word_size, hidden)
        self.width = nn.Embedding(WIDTHS, hidden)
        self.out = nn.Linear(hidden, size)
        nn.init.normal_(self.width.weight, std=0.1)

    def forward(self, first: Tensor, last: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """Return unit vectors of spans. [spans, size]

        ``first`` and ``last`` [words, word size] are vectors of the first and last piece of each word; ``starts`` and
        ``ends`` (exclusive) [spans] are positions of words.
        """
        width = (ends - starts - 1).clamp_max(WIDTHS - 1)
        # Words are projected before they become spans: a word is in many spans. The lookup is one of embeddings,
        # because the gradient of indexing is not added up in a fixed order.
        start = F.embedding(starts, self.start(first))
        end = F.embedding(ends - 1, self.end(last))
        return F.normalize(self.out(F.gelu(start + end + self.width(width))), dim=-1)


class NamePrior(nn.Module):
    """A linear scorer made from a label's name: the weights and bias that a label has before any example."""

    def __init__(self, word_size: int, size: int, hidden: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(word_size, hidden)
        self.out = nn.Linear(hidden, size)
        self.bias = nn.Linear(hidden, 1)
        self.nameless_weights = nn.Parameter(torch.zeros(size))
        self.nameless_bias = nn.Parameter(torch.tensor(FIRST_BIAS))
        nn.init.zeros_(self.bias.weight)
        nn.init.constant_(self.bias.bias, FIRST_BIAS)

    def forward(self, means: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights [names, size] and biases [names], given the mean vector of each name's pieces."""
        inner = F.gelu(self.hidden(means))
        return PRIOR_SCALE * self.out(inner), torch.squeeze(self.bias(inner), 1)

    def nameless(self, labels: int) -> tuple[Tensor, Tensor]:
        """Return weights [labels, size] and biases [labels] of labels without a name: the same for all."""
        return PRIOR_SCALE * self.nameless_weights.expand(labels, -1), self.nameless_bias.expand(labels)
