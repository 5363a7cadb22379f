"""Candidate spans, and the vectors of those of a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Bounds = npt.NDArray[np.int64]
LONGEST = 12
"""Most words of a candidate, unless an example is longer."""
_DENSE = 32
_SPARSE = 16


@dataclass(frozen=True, slots=True)
class SpanVectors:
    """The candidate spans of a sentence and their vectors."""

    bounds: Bounds  # [spans, 2]: start and end, by start, then end
    vectors: npt.NDArray[np.float32]  # [spans, size], of length 1

    def of(self, bounds: Bounds) -> SpanVectors | None:
        """Return the vectors of some of the spans, in the same order; None if one of them is not there."""
        if bounds is self.bounds or np.array_equal(bounds, self.bounds):
            return self
        base = max(int(bounds.max(initial=0)), int(self.bounds.max(initial=0))) + 1
        keys, wanted = self.bounds @ np.array([base, 1]), bounds @ np.array([base, 1])
        rows = np.searchsorted(keys, wanted)
        if (rows >= len(keys)).any() or (keys[rows] != wanted).any():
            return None
        return SpanVectors(bounds, self.vectors[rows])


def candidate_widths(examples: Iterable[int] = (), longest: int = LONGEST) -> tuple[int, ...]:
    """Return the widths of candidates, in words: all up to ``longest``, or as long as the longest example.

    Of more than 32 words, only the widths of examples and some in between are candidates, which bounds the cost.

    >>> candidate_widths([3], longest=4), candidate_widths([6], longest=4)
    ((1, 2, 3, 4), (1, 2, 3, 4, 5, 6))
    """
    wide = sorted({width for width in examples if width > longest})
    dense = set(range(1, min(max([longest, *wide]), max(_DENSE, longest)) + 1))
    if wide and wide[-1] > _DENSE:
        between = np.geomspace(_DENSE, wide[-1], _SPARSE).round().astype(int).tolist()
        picks = (
            wide if len(wide) <= _SPARSE else [wide[at] for at in np.linspace(0, len(wide) - 1, _SPARSE).astype(int)]
        )
        dense.update(between, picks)
    return tuple(sorted(dense))


@lru_cache(maxsize=1024)
def candidates(words: int, widths: tuple[int, ...]) -> Bounds:
    """Return the spans of a sentence that have one of the widths, by start, then end. [spans, 2]

    >>> candidates(3, (1, 2)).tolist()
    [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    """
    starts = np.arange(words)[:, None]
    ends = starts + np.asarray(widths, np.int64)
    fits = ends <= words
    bounds = np.stack([np.broadcast_to(starts, ends.shape)[fits], ends[fits]], 1)
    bounds.setflags(write=False)
    return bounds


def with_spans(bounds: Bounds, spans: Iterable[tuple[int, int]]) -> Bounds:
    """Return the candidates with further spans, by start, then end."""
    known = set(map(tuple, bounds.tolist()))
    extra = set(spans) - known
    return np.array(sorted(known | extra), np.int64).reshape(-1, 2) if extra else bounds
