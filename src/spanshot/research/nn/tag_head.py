"""A linear layer over words for the tags of a label set that becomes known later, or changes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from spanshot.research.nn.encoder import WordVectors
from spanshot.research.nn.loss import TokenLogits
from spanshot.tags import tags_of_labels


class TagHead(nn.Module):
    """Scores of O and every tag of ``labels`` for each word, from its first piece.

    The labels are not among its weights: a checkpoint stores them in its settings, and gives them to `know`
    before the weights are loaded.
    The weights start at zero, so the order of the labels does not matter.
    """

    def __init__(self, size: int, scheme: str, labels: Sequence[str] = ()) -> None:
        super().__init__()
        self.size, self.scheme = size, scheme
        self.linear: nn.Linear
        self.labels: tuple[str, ...]
        self.know(labels)

    def know(self, labels: Sequence[str]) -> None:
        """Reset the layer for these labels."""
        self.labels = tuple(labels)
        old = getattr(self, "linear", None)
        device = None if old is None else old.weight.device
        self.linear = nn.Linear(self.size, len(self.tags), device=device)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    @property
    def tags(self) -> tuple[str, ...]:
        """O, and every tag of the labels."""
        return tags_of_labels(self.labels, self.scheme)

    def forward(self, words: WordVectors) -> list[TokenLogits]:
        """Return the logits of each sentence."""
        tags = self.tags
        return [TokenLogits(tags, logits) for logits in torch.split(self.linear(words.first), list(words.lengths))]
