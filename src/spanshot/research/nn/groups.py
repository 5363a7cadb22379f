"""Vectors grouped by class: each class is a slice of one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Groups:
    """The members of several classes, one class after another."""

    vectors: Tensor  # [members, size]
    rows: tuple[slice, ...]
    """The rows of each class in ``vectors``; a class may be empty."""


def grouped(vectors: Tensor, members: Sequence[Sequence[int]]) -> Groups:
    """Group the rows of ``vectors`` [n, size] by class; a row may be a member of several classes."""
    rows: list[slice] = []
    order: list[int] = []
    for numbers in members:
        rows.append(slice(len(order), len(order) + len(numbers)))
        order.extend(numbers)
    return Groups(vectors[torch.tensor(order, dtype=torch.long, device=vectors.device)], tuple(rows))


def squared_distances(vectors: Tensor, others: Tensor) -> Tensor:
    """Return the distances of ``vectors`` [..., n, size] and ``others`` [..., m, size]: [..., n, m], never negative."""
    lengths = vectors.square().sum(-1, keepdim=True) + others.square().sum(-1).unsqueeze(-2)
    return (lengths - 2 * vectors @ others.transpose(-1, -2)).clamp_min(0.0)
