"""Found spans that get in each other's way: five strategies that choose which of them stay.

A resolver takes scored spans of one sentence in any order and returns those that stay, sorted by position,
each with the score it came with. A span given twice counts once, with its best score. The same words under
two labels are two spans that overlap entirely.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from spanshot.errors import ConfigError
from spanshot.types import ScoredSpan, Span

ANY_OVERLAP = sys.float_info.min  # the least ``overlap``: one shared word is already a conflict


class Resolver(Protocol):
    """Chooses among the scored spans of one sentence."""

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """The spans that stay, sorted by position."""
        ...


@dataclass(frozen=True, slots=True)
class KeepAll:
    """No refining: every span stays, overlapping or not."""

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """All spans, sorted by position."""
        return _by_position(_best_first(scored))


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
        """The spans that stay, sorted by position."""
        kept: list[ScoredSpan] = []
        for candidate in _best_first(scored):
            if not any(candidate.span.overlaps(other.span) for other in kept):
                kept.append(candidate)
        return _by_position(kept)


@dataclass(frozen=True, slots=True)
class SoftNMS:
    """Bodla et al., "Soft-NMS -- Improving Object Detection With One Line of Code" (2017), on spans.

    Takes spans best first too, but a span that conflicts with taken ones is not struck out: each conflict
    multiplies its score by ``decay``, and it may still be taken while that exceeds ``threshold``. Two spans
    conflict if they have at least ``overlap`` of their words in common (intersection over union).
    As in BSNMS the decay is a constant, where the original has a function of the overlap.

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
        _check(overlap=self.overlap, decay=self.decay, threshold=self.threshold)

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """The spans that stay, sorted by position."""
        candidates = _best_first(scored)
        conflicts = _conflicts(candidates, self.overlap)
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
        return _by_position(_chosen(candidates, taken))


@dataclass(frozen=True, slots=True)
class BeamSearch:
    """Searches for the set of spans without a shared word that has the best mean score.

    A set is extended for as long as any span fits in, so that leaving out a weak span is no way to a better
    mean. The beam keeps the ``width`` best sets of each step.

    >>> from spanshot.types import ScoredSpan, Span
    >>> long = ScoredSpan(Span(0, 4, "title"), 0.9)
    >>> first = ScoredSpan(Span(0, 2, "name"), 0.95)
    >>> second = ScoredSpan(Span(2, 4, "name"), 0.3)
    >>> BeamSearch(width=2)([long, first, second]) == [long]  # 0.9 against (0.95 + 0.3) / 2
    True
    >>> Greedy()([long, first, second]) == [first, second]
    True
    """

    width: int = 5  # b

    def __post_init__(self) -> None:
        _check(width=self.width)

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """The spans that stay, sorted by position."""
        candidates = _best_first(scored)
        scores = [candidate.score for candidate in candidates]
        return _by_position(_search(candidates, [scores], -float("inf"), ANY_OVERLAP, self.width))


@dataclass(frozen=True, slots=True)
class BeamSoftNMS:
    """Wang et al., "An Enhanced Span-based Decomposition Method for Few-Shot Sequence Labeling" (2022), §4.5.

    Beam search over sets of spans in which conflicts cost instead of being forbidden. A span that joins a set
    brings its score times ``decay`` for each span there that it conflicts with, and may join only if that
    exceeds ``threshold``. The path score of a set is the mean of what its spans brought; if a set is reached
    on several paths the best counts. A set that nothing can join stays as it is and competes on.

    Three spans, ``overlap=0.1, decay=0.5, threshold=0.1, width=2``; a and b conflict, c is apart::

        a = [0, 4) 0.9    b = [0, 2) 0.8    c = [6, 7) 0.3

        step 1   a 0.9            b 0.8          (c is third and pruned)
        step 2   ac (0.9+0.3)/2 = 0.6    ab (0.9+0.4)/2 = 0.65    ba (0.8+0.45)/2 = 0.625    bc 0.55
                 ab and ba are one set, kept as 0.65; ab and ac survive
        step 3   abc (0.9+0.4+0.3)/3 = 0.533 from ab, the same from ac; nothing is left to add

    The search starts from the ``width`` best spans, as in the paper, or from the ``starts`` best; the authors' released
    code starts from the single best (``starts=1``). The paper does not say which of two equal path scores wins. Here
    the larger set wins, then the one with the best-ranked span that the other lacks; spans rank by score, then by
    position.
    """

    width: int = 5  # b
    overlap: float = 1e-5  # k
    decay: float = 1e-5  # u
    threshold: float = 0.1  # δ
    starts: int = 0  # 0: as many as the beam is wide

    def __post_init__(self) -> None:
        _check(self.width, self.overlap, self.decay, self.threshold, self.starts)

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """The spans that stay, sorted by position."""
        candidates = [candidate for candidate in _best_first(scored) if candidate.score > self.threshold]
        decayed = [[candidate.score for candidate in candidates]]
        while len(decayed) < len(candidates):  # a span conflicts with at most all the others
            factor = self.decay ** len(decayed)
            row = [candidate.score * factor for candidate in candidates]
            if row[0] <= self.threshold:
                break
            decayed.append(row)
        return _by_position(_search(candidates, decayed, self.threshold, self.overlap, self.width, self.starts))


_State = tuple[float, int, int, float, list[int]]
_Extension = tuple[float, int, int, float, list[int], int]


def _search(
    candidates: Sequence[ScoredSpan],  # best first
    decayed: Sequence[Sequence[float]],  # [η][candidate]: its score after η conflicts
    threshold: float,
    overlap: float,
    width: int,
    starts: int = 0,  # states kept after the first step; 0: width
) -> list[ScoredSpan]:
    """The spans of the best state that a beam search ends with. More conflicts than ``decayed`` has block.

    A set of candidates is an int with bit ``last - i`` for the i-th best, so that the highest bit is the best
    candidate and of two sets the larger int holds the best one that they don't share.
    A state is ``(path score, size, set, total, free)``, whose first three items are its rank in the beam;
    ``free[η]`` is the set of candidates that may join it and have η conflicts with it. An extension, not yet
    known to survive, still has its parent's ``free``, and the bit that joined (-1 if none could).
    """
    if not candidates:
        return []
    last = len(candidates) - 1
    worst_first = candidates[::-1]
    conflicts = _conflicts(worst_first, overlap)
    passing = [sum(1 << last - i for i, score in enumerate(row) if score > threshold) for row in decayed]
    by_bit = [row[::-1] for row in decayed]

    def extended(free: list[int], bit: int) -> list[int]:
        """``free`` after a candidate has joined: those in conflict with it move up by one η."""
        near, others = conflicts[bit], ~(1 << bit)
        below = 0
        moved = []
        for here, able in zip(free, passing, strict=True):
            moved.append((here & ~near | below & near) & able & others)
            below = here
        return moved

    # Only a state's ``width`` best extensions can stay in the beam, since they are different sets; they are
    # among the ``width`` best of each η, and within one η the decayed scores are in the candidates' order.
    empty: _State = (0.0, 0, 0, 0.0, [passing[0]] + [0] * (len(passing) - 1))
    beam: list[_State] = [empty]
    kept = starts or width
    while any(any(state[4]) for state in beam):
        found: dict[int, _Extension] = {}
        for path, size, chosen, total, free in beam:
            if not any(free):
                found[chosen] = (path, size, chosen, total, free, -1)
                continue
            for eta, left in enumerate(free):
                for _ in range(kept):
                    if not left:
                        break
                    bit = left.bit_length() - 1
                    left ^= 1 << bit
                    new = chosen | 1 << bit
                    new_total = total + by_bit[eta][bit]
                    if new not in found or found[new][3] < new_total:
                        found[new] = (new_total / (size + 1), size + 1, new, new_total, free, bit)
        best = sorted(found.values(), reverse=True)[:kept]
        kept = width
        beam = [
            (path, size, chosen, total, free if bit < 0 else extended(free, bit))
            for path, size, chosen, total, free, bit in best
        ]
    return _chosen(worst_first, max(beam)[2])


def _conflicts(candidates: Sequence[ScoredSpan], overlap: float) -> list[int]:
    """For each candidate the set of those it conflicts with, itself included: bit i for the i-th."""
    if not candidates:
        return []
    start = np.array([candidate.span.start for candidate in candidates])
    end = np.array([candidate.span.end for candidate in candidates])
    shared = np.minimum(end[:, None], end) - np.maximum(start[:, None], start)  # (n, n), negative if apart
    length = end - start
    iou = shared / (length[:, None] + length - shared)
    rows = np.packbits(iou >= overlap, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def _chosen(candidates: Sequence[ScoredSpan], bits: int) -> list[ScoredSpan]:
    return [candidate for i, candidate in enumerate(candidates) if bits >> i & 1]


def _best_first(scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
    """Each span once, by falling score; equals by position and label, so that input order is no matter."""
    best: dict[Span, ScoredSpan] = {}
    for candidate in sorted(scored, key=lambda s: (-s.score, s.span.start, s.span.end, s.span.label)):
        best.setdefault(candidate.span, candidate)
    return list(best.values())


def _by_position(scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
    return sorted(scored, key=lambda s: (s.span.start, s.span.end, s.span.label))


def _check(
    width: int = 1, overlap: float = ANY_OVERLAP, decay: float = 0.0, threshold: float = 0.0, starts: int = 0
) -> None:
    """Raises one error with all the problems that the settings have."""
    problems = [
        message
        for holds, message in (
            (width >= 1, f"width must be at least 1; found {width}"),
            (0 < overlap <= 1, f"overlap must be above 0 and at most 1; found {overlap}"),
            (0 <= decay <= 1, f"decay must be from 0 to 1; found {decay}"),
            (0 <= threshold < 1, f"threshold must be at least 0 and below 1; found {threshold}"),
            (starts >= 0, f"starts must be 0 (as many as the beam is wide) or more; found {starts}"),
        )
        if not holds
    ]
    if problems:
        raise ConfigError("; ".join(problems))


RESOLVERS: dict[str, type[Any]] = {
    "none": KeepAll,
    "greedy": Greedy,
    "soft_nms": SoftNMS,
    "beam": BeamSearch,
    "bsnms": BeamSoftNMS,
}

# The paper's settings for corpora without nested spans, where one conflict always blocks, and with them.
FLAT = BeamSoftNMS(width=5, overlap=1e-5, decay=1e-5, threshold=0.1)
NESTED = BeamSoftNMS(width=5, overlap=0.1, decay=0.4, threshold=0.1)


def resolver(name: str, **settings: float) -> Resolver:
    """The strategy called ``name``, given those of the settings that it has.

    >>> resolver("beam", width=3, threshold=0.1)
    BeamSearch(width=3)
    """
    kind = RESOLVERS.get(name)
    if kind is None:
        raise ConfigError(f"refine must be one of {', '.join(RESOLVERS)}; found {name!r}")
    built: Resolver = kind(**{key: settings[key] for key in kind.__dataclass_fields__ if key in settings})
    return built
