"""A long text in windows that overlap, and what was found in them as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanshot.types import ScoredSpan

Window = tuple[int, int]
"""First word, and one past the last."""


def windows_over(words: int, size: int, overlap: int) -> list[Window]:
    """Windows of ``size`` words, each sharing ``overlap`` with the next; the last may share more.

    >>> windows_over(20, 10, 4)
    [(0, 10), (6, 16), (10, 20)]
    """
    if not 0 <= overlap < size:
        raise ValueError(f"windows of {size} words cannot share {overlap}")
    starts = [*range(0, max(words - size, 0), size - overlap), max(words - size, 0)]
    return [(start, min(start + size, words)) for start in starts]


def merge(found: Sequence[Sequence[ScoredSpan]], windows: Sequence[Window]) -> list[ScoredSpan]:
    """The spans found in each window as spans of the whole, each from the window that sees it best.

    Where two windows disagree on what overlaps, the span that stands farther from its window's edge is kept.
    """
    total = windows[-1][1]

    def margin(span: Window, window: Window) -> int:
        """Words between a span and the nearest edge; beyond the text's own ends there is nothing to miss."""
        before = span[0] - window[0] if window[0] else total
        after = window[1] - span[1] if window[1] < total else total
        return min(before, after)

    candidates: list[tuple[int, int, ScoredSpan]] = []
    for number, (own, window) in enumerate(zip(found, windows, strict=True)):
        for scored in own:
            span = scored.span
            bounds = (span.start + window[0], span.end + window[0])
            seeing = [n for n, other in enumerate(windows) if other[0] <= bounds[0] and bounds[1] <= other[1]]
            if number == max(seeing, key=lambda n, bounds=bounds: margin(bounds, windows[n])):  # type: ignore[misc]
                moved = replace(span, start=bounds[0], end=bounds[1])
                candidates.append((margin(bounds, window), number, replace(scored, span=moved)))
    kept: list[tuple[int, ScoredSpan]] = []
    for _, number, scored in sorted(candidates, key=lambda candidate: -candidate[0]):
        if not any(number != other and scored.span.overlaps(rival.span) for other, rival in kept):
            kept.append((number, scored))
    return sorted((scored for _, scored in kept), key=lambda scored: scored.span)
