"""Small ESD methods with fixed weights, and the settings of its two published variants."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spanshot.research.methods.esd import Esd, EsdSettings, SpanMemory
from spanshot.research.nn.encoder import Encoder
from spanshot.research.training.settings import RunSettings

SMALL = EsdSettings(size=8, longest=3, identity_start=False)  # attention matters without training
PAPER = {
    "span_head": "linear",
    "attention": "plain",
    "feed_width": 4,
    "identity_start": False,
    "distance": "euclidean",
    "scaled": False,
}
"""As in the equations of the paper."""
RELEASED = {
    "span_head": "wide",
    "attention": "released",
    "feed_width": 4,
    "identity_start": False,
    "similarity": "tanh",
    "scaled": False,
    "vector_dropout": 0.5,
    "beam_starts": 1,
}
"""As in the code that the authors released."""


def small_esd(encoder: Encoder, **changes: object) -> Esd:
    """Return ESD with the small settings, some of them changed. The weights are the same every time."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return Esd(encoder, replace(SMALL, **changes)).eval()


@torch.no_grad()
def matched(method: Esd, memory: SpanMemory, query: Tensor) -> Tensor:
    """Return the scores of the spans of one sentence. [spans, 1 + labels]"""
    return method.match(memory, query[None], torch.ones(1, len(query), dtype=torch.bool))[0]


def untrained_settings(encoder: Path) -> RunSettings:
    """Return the settings of a small ESD that is used as it is, without training."""
    return RunSettings.of(
        {
            "method": {"name": "esd", "size": 16},
            "data": {"kind": "episodes", "train": "none", "dev": "none"},
            "encoder": {"name": str(encoder)},
        }
    )


def some_memory(seed: int, labels: int, parts: int) -> tuple[SpanMemory, Tensor]:
    """A memory and query spans of random vectors, not too large for a softmax to choose between them."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(1, 5, (labels + parts,), generator=generator).tolist()
    ends = np.cumsum([0, *counts]).tolist()
    rows = tuple(slice(a, b) for a, b in itertools.pairwise(ends))
    vectors = torch.randn(ends[-1], 8, generator=generator)
    memory = SpanMemory(tuple(f"label {n}" for n in range(labels)), vectors, rows[:labels], rows[labels:])
    return memory, torch.randn(6, 8, generator=generator)


def attended(query: Tensor, spans: Tensor, scale: float) -> Tensor:
    """phi(q, S) = softmax(q S^T) S, for one query span and the spans of one class."""
    weights = torch.tensor([scale * float(query @ span) for span in spans]).exp()
    return sum(
        (weight * span for weight, span in zip(weights / weights.sum(), spans, strict=True)), torch.zeros_like(query)
    )
