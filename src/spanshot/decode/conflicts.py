"""Resolvers: five ways to choose among overlapping spans.

A resolver takes scored spans of one sentence in any order and returns those that stay, sorted by position, each with
its score. A span given twice counts once, with its best score. The same words under two labels are two spans that
overlap entirely. Greedy choice is in ``decode.greedy``, beam search and Beam Soft-NMS are in ``decode.spans``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spanshot.decode.greedy import Greedy
from spanshot.decode.spans import BeamSearch, BeamSoftNMS, Resolver, best_first, check_settings, conflicts_of
from spanshot.errors import ConfigError
from spanshot.types import ScoredSpan

__all__ = [
    "FLAT",
    "NESTED",
    "RESOLVERS",
    "BeamSearch",
    "BeamSoftNMS",
    "Greedy",
    "KeepAll",
    "Resolver",
    "SoftNMS",
    "resolver",
]


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Keeps every span, overlapping or not."""

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """Return all spans, sorted by position."""
        return sorted(best_first(scored), key=lambda candidate: candidate.span)


@dataclass(frozen=True, slots=True)
class SoftNMS:
    """Bodla et al., "Soft-NMS -- Improving Object Detection With One Line of Code" (2017), on spans.

    Takes spans best first. Each conflict with a span already taken multiplies a span's score by ``decay``, and the span
    is dropped once its score is at most ``threshold``. Two spans conflict if they share at least ``overlap`` of their
    words (intersection over union). As in Beam Soft-NMS, the decay is a constant; the original uses a function of the
    overlap.

    >>> from spanshot.types import ScoredSpan, Span
    >>> outer = ScoredSpan(Span(0, 4, "protein"), 0.9)
    >>> inner = ScoredSpan(Span(0, 2, "DNA"), 0.6)  # half of the words: 0.6 * 0.4 = 0.24 stays above 0.1
    >>> shifted = ScoredSpan(Span(1, 4, "RNA"), 0.2)  # 3 of 4 words: 0.2 * 0.4 = 0.08 does not
    >>> SoftNMS(overlap=0.1, decay=0.4, threshold=0.1)([outer, inner, shifted]) == [inner, outer]
    True
    """

    overlap: float = 1e-5  # k
    decay: float = 1e-5  # u
    threshold: float = 0.1  # δ

    def __post_init__(self) -> None:
        check_settings(overlap=self.overlap, decay=self.decay, threshold=self.threshold)

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """Return the spans that stay, sorted by position."""
        candidates = best_first(scored)
        conflicts = conflicts_of(candidates, self.overlap)
        taken = 0  # bits
        waiting = {i: candidate.score for i, candidate in enumerate(candidates)}  # to decayed scores
        while waiting:
            best = max(waiting, key=waiting.__getitem__)  # of equals the first, which ranks higher
            if waiting.pop(best) <= self.threshold:
                break
            taken |= 1 << best
            for i in waiting:
                if conflicts[best] >> i & 1:
                    waiting[i] = candidates[i].score * self.decay ** (conflicts[i] & taken).bit_count()
        return sorted(
            (candidate for i, candidate in enumerate(candidates) if taken >> i & 1),
            key=lambda candidate: candidate.span,
        )


RESOLVERS: dict[str, Callable[[], Resolver]] = {
    "none": KeepAll,
    "greedy": Greedy,
    "soft_nms": SoftNMS,
    "beam": BeamSearch,
    "bsnms": BeamSoftNMS,
}

# The paper's settings for corpora without nested spans (a single conflict always blocks) and with nested spans.
FLAT = BeamSoftNMS(width=5, overlap=1e-5, decay=1e-5, threshold=0.1)
NESTED = BeamSoftNMS(width=5, overlap=0.1, decay=0.4, threshold=0.1)


def resolver(
    name: str, *, width: int = 5, overlap: float = 1e-5, decay: float = 1e-5, threshold: float = 0.1, starts: int = 0
) -> Resolver:
    """Return the resolver called ``name`` with the settings that apply to it.

    >>> resolver("beam", width=3, threshold=0.1)
    BeamSearch(width=3)
    """
    if name not in RESOLVERS:
        raise ConfigError(f"refine must be one of {', '.join(RESOLVERS)}; found {name!r}")
    if name == "soft_nms":
        return SoftNMS(overlap, decay, threshold)
    if name == "beam":
        return BeamSearch(width)
    if name == "bsnms":
        return BeamSoftNMS(width, overlap, decay, threshold, starts)
    return RESOLVERS[name]()
