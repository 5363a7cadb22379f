"""The scores of one sentence, as arrays: the input of decoding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bounds = npt.NDArray[np.int64]  # [spans, 2]: start, end exclusive
Floats = npt.NDArray[np.float32] | npt.NDArray[np.float64]
OBias = float | npt.NDArray[np.float64]  # one for all, or one for each class but O


@dataclass(frozen=True, slots=True)
class SpanScores:
    """A score for each candidate span and class: column 0 is O, then the labels. Higher is nearer."""

    labels: tuple[str, ...]
    bounds: Bounds
    scores: Floats  # [spans, 1 + labels]
    evidence: Floats | None = None  # [spans, support spans of all labels]: similarities, if the method has any


@dataclass(frozen=True, slots=True)
class TokenScores:
    """A score for each word and tag: column 0 is O. Higher is nearer."""

    tags: tuple[str, ...]
    scores: Floats  # [words, tags]
    nearest: npt.NDArray[np.int64] | None = None  # [words, tags]: number of the nearest support word, if there is one
