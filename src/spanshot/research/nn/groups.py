"""Vectors laid out class by class, so that each class is a slice of one tensor."""

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
    """Where the members of each class lie; a class may be empty."""


def grouped(vectors: Tensor, members: Sequence[Sequence[int]]) -> Groups:
    """The rows of ``vectors`` [n, size] that are members of each class; a row may be in several."""
    rows: list[slice] = []
    order: list[int] = []
    for own in members:
        rows.append(slice(len(order), len(order) + len(own)))
        order.extend(own)
    return Groups(vectors[torch.tensor(order, dtype=torch.long, device=vectors.device)], tuple(rows))


def squared_distances(vectors: Tensor, others: Tensor) -> Tensor:
    """Between each of ``vectors`` [..., n, size] and each of ``others`` [..., m, size]: [..., n, m], never negative."""
    lengths = vectors.square().sum(-1, keepdim=True) + others.square().sum(-1).unsqueeze(-2)
    return (lengths - 2 * vectors @ others.transpose(-1, -2)).clamp_min(0.0)
