"""The scores of one sentence, as arrays: the input of decoding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanshot.errors import CheckpointError

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


def with_o_bias(scores: Floats, o_bias: OBias) -> npt.NDArray[np.float64]:
    """Return scores with ``o_bias`` subtracted from column 0, or added to the other columns if there is one for each.

    >>> with_o_bias(np.array([[1.0, 0.5]]), 0.75).tolist()
    [[0.25, 0.5]]
    """
    logits = np.array(scores, dtype=np.float64)
    if isinstance(o_bias, np.ndarray):
        logits[:, 1:] += o_bias
    else:
        logits[:, 0] -= o_bias
    if np.isnan(logits).any():
        raise CheckpointError("the model's scores are not numbers: its weights are damaged")
    return logits
