"""A linear layer over words for the tags of a label set that becomes known later, or changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spanshot.research.nn.encoder import WordVectors
from spanshot.research.nn.loss import TokenLogits
from spanshot.tags import tags_of_labels


class TagHead(nn.Module):
    """Scores of O and every tag of ``labels`` for each word, from its first piece.

    The labels are part of its state, so a head that was trained can be loaded into one that knows no label yet.
    Its weights begin at zero: labels start out alike, in whatever order they come.
    """

    def __init__(self, size: int, scheme: str, labels: Sequence[str] = ()) -> None:
        super().__init__()
        self.size, self.scheme = size, scheme
        self.linear: nn.Linear
        self.labels: tuple[str, ...]
        self.know(labels)
        self.register_load_state_dict_pre_hook(_know_saved_labels)  # type: ignore[no-untyped-call]

    def know(self, labels: Sequence[str]) -> None:
        """Start anew with these labels."""
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
        return [TokenLogits(tags, own) for own in torch.split(self.linear(words.first), list(words.lengths))]

    def get_extra_state(self) -> Tensor:
        """The labels, as bytes: a state may hold nothing but tensors."""
        return torch.tensor(list(json.dumps(self.labels).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """Nothing is left to do: the labels were taken up before the weights."""


def _know_saved_labels(head: nn.Module, state: Mapping[str, Tensor], prefix: str, *_: object) -> None:
    assert isinstance(head, TagHead)
    saved = state.get(f"{prefix}_extra_state")
    if saved is not None:
        labels = tuple(json.loads(bytes(saved.tolist())))
        if labels != head.labels:
            head.know(labels)
