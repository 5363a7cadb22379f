"""Choose among overlapping spans, best first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from spanshot.types import ScoredSpan

Bounds = tuple[int, int]
Label = TypeVar("Label", int, str)


def best_without_conflicts(
    bounds: Sequence[Bounds], labels: Sequence[Label], scores: Sequence[float], nested: float | None = None
) -> list[int]:
    """Take spans best first and skip each in conflict with one already taken. Return positions, by bounds.

    No two spans may share a word. If ``nested`` is given, one may lie inside another, and two labels may have the same
    span, but a span inside or around a better one of its own label needs at least the score ``nested``. Of spans with
    equal scores, the one with lower bounds and label comes first.

    >>> best_without_conflicts([(0, 2), (1, 2), (1, 3)], ["city", "person", "city"], [0.9, 0.8, 0.7])
    [0]
    >>> best_without_conflicts([(0, 2), (1, 2), (1, 3)], ["city", "person", "city"], [0.9, 0.8, 0.7], nested=0.95)
    [0, 1]
    """
    taken: list[int] = []
    for at in sorted(range(len(scores)), key=lambda at: (-scores[at], bounds[at], labels[at])):
        start, end = bounds[at]
        for other in taken:
            a, b = bounds[other]
            if start < b and a < end:
                crosses = (start < a and end < b) or (start > a and end > b)
                if nested is None or crosses or (labels[other] == labels[at] and scores[at] < nested):
                    break
        else:
            taken.append(at)
    return sorted(taken, key=lambda at: (bounds[at], labels[at]))


@dataclass(frozen=True, slots=True)
class Greedy:
    """Takes spans best first and skips each that shares a word with one already taken.

    >>> from spanshot.types import ScoredSpan, Span
    >>> york = ScoredSpan(Span(1, 2, "person"), 0.7)
    >>> new_york = ScoredSpan(Span(0, 2, "city"), 0.9)
    >>> times = ScoredSpan(Span(2, 3, "paper"), 0.6)
    >>> Greedy()([york, new_york, times]) == [new_york, times]
    True
    """

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """Return the spans that stay, sorted by position."""
        candidates = list(scored)
        bounds = [(candidate.span.start, candidate.span.end) for candidate in candidates]
        labels = [candidate.span.label for candidate in candidates]
        kept = best_without_conflicts(bounds, labels, [candidate.score for candidate in candidates])
        return [candidates[at] for at in kept]
