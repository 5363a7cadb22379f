"""Decode the scores of candidate spans: probable spans, Beam Soft-NMS, and evidence."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from spanshot.decode.scores import OBias, SpanScores, with_o_bias
from spanshot.errors import ConfigError
from spanshot.types import Evidence, ScoredSpan, Span

ANY_OVERLAP = sys.float_info.min  # the least ``overlap``: one shared word is already a conflict
MOST_EVIDENCE = 3


class Resolver(Protocol):
    """Chooses among the scored spans of one sentence."""

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """Return the spans that stay, sorted by position."""
        ...


@dataclass(frozen=True)
class SpanDecoder:
    """Finds the spans that are more probable than O; a resolver chooses among those that overlap."""

    resolver: Resolver

    def __call__(self, scores: SpanScores, o_bias: OBias = 0.0) -> list[ScoredSpan]:
        """Return the spans of one sentence whose most probable class is a label, with that probability.

        ``o_bias`` is subtracted from the score of O, or added to the other classes if there is one for each. A higher
        bias gives more spans.
        """
        logits = with_o_bias(scores.scores, o_bias)
        best = logits.argmax(axis=1)
        rows = np.flatnonzero(best)
        chosen = logits[rows]
        probability = 1.0 / np.exp(chosen - chosen.max(axis=1, keepdims=True)).sum(axis=1)
        candidates = zip(scores.bounds[rows].tolist(), best[rows].tolist(), probability.tolist(), strict=True)
        return self.resolver(
            ScoredSpan(Span(start, end, scores.labels[label - 1]), score) for (start, end), label, score in candidates
        )


def with_evidence(
    spans: Sequence[ScoredSpan],
    scores: SpanScores,
    rows: Sequence[slice],
    origin: Sequence[tuple[int, Span] | None],
) -> list[ScoredSpan]:
    """Add to each span the support spans with the largest weights.

    ``rows`` are the columns of each label's support spans in ``scores.evidence``, and ``origin`` says where each of
    these comes from (None: from the label's name). The weights are those of the label's prototype.
    """
    if scores.evidence is None:
        return list(spans)
    columns = dict(zip(scores.labels, rows, strict=True))
    explained = []
    for scored in spans:
        row = np.flatnonzero((scores.bounds == (scored.span.start, scored.span.end)).all(axis=1))[0]
        label_columns = columns[scored.span.label]
        near = np.asarray(scores.evidence[row, label_columns], dtype=np.float64)
        weights = np.exp(near - near.max())
        weights /= weights.sum()
        reasons = []
        for number in np.argsort(-weights, kind="stable").tolist():
            if (place := origin[label_columns.start + number]) is not None:
                reasons.append(Evidence(place[0], place[1], float(weights[number])))
        explained.append(replace(scored, because=tuple(reasons[:MOST_EVIDENCE])))
    return explained


@dataclass(frozen=True, slots=True)
class BeamSearch:
    """Searches for the set of spans without a shared word that has the best mean score.

    A set is extended as long as any span fits, so leaving out a weak span does not improve the mean. The beam keeps
    the ``width`` best sets of each step.

    >>> from spanshot.decode.conflicts import Greedy
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
        check_settings(width=self.width)

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """Return the spans that stay, sorted by position."""
        candidates = best_first(scored)
        scores = [candidate.score for candidate in candidates]
        return _search(candidates, [scores], -float("inf"), ANY_OVERLAP, self.width)


@dataclass(frozen=True, slots=True)
class BeamSoftNMS:
    """Wang et al., "An Enhanced Span-based Decomposition Method for Few-Shot Sequence Labeling" (2022), §4.5.

    Beam search over sets of spans that penalizes conflicts instead of forbidding them. A span that joins a set
    contributes its score, multiplied by ``decay`` for each span of the set that it conflicts with. It may join only if
    this product exceeds ``threshold``. The path score of a set is the mean of these contributions; if several paths
    reach the same set, the best one counts. A set that no span can join stays in the beam.

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
        check_settings(self.width, self.overlap, self.decay, self.threshold, self.starts)

    def __call__(self, scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
        """Return the spans that stay, sorted by position."""
        candidates = [candidate for candidate in best_first(scored) if candidate.score > self.threshold]
        decayed = [[candidate.score for candidate in candidates]]
        while len(decayed) < len(candidates):  # a span conflicts with at most all the others
            factor = self.decay ** len(decayed)
            row = [candidate.score * factor for candidate in candidates]
            if row[0] <= self.threshold:
                break
            decayed.append(row)
        return _search(candidates, decayed, self.threshold, self.overlap, self.width, self.starts)


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
    """Return the spans of the best state that a beam search ends with. More conflicts than ``decayed`` has block.

    A set of candidates is an int with bit ``last - i`` for the i-th best, so that the highest bit is the best
    candidate and of two sets the larger int holds the best one that they don't share.
    A state is ``(path score, size, set, total, free)``, whose first three items are its rank in the beam;
    ``free[η]`` is the set of candidates that may join it and have η conflicts with it. An extension, not yet
    known to survive, has its parent's ``free``, and the bit that joined (-1 if none could).
    """
    if not candidates:
        return []
    last = len(candidates) - 1
    worst_first = candidates[::-1]
    conflicts = conflicts_of(worst_first, overlap)
    passing = [sum(1 << last - i for i, score in enumerate(row) if score > threshold) for row in decayed]
    by_bit = [row[::-1] for row in decayed]

    # Only a state's ``width`` best extensions can stay in the beam, since they are different sets; they are
    # among the ``width`` best of each η, and within one η the decayed scores are in the candidates' order.
    empty: _State = (0.0, 0, 0, 0.0, [passing[0]] + [0] * (len(passing) - 1))
    beam: list[_State] = [empty]
    kept = starts or width
    while any(any(state[4]) for state in beam):
        extensions: dict[int, _Extension] = {}
        for path, size, chosen, total, free in beam:
            if not any(free):
                extensions[chosen] = (path, size, chosen, total, free, -1)
                continue
            for eta, left in enumerate(free):
                for _ in range(kept):
                    if not left:
                        break
                    bit = left.bit_length() - 1
                    left ^= 1 << bit
                    new = chosen | 1 << bit
                    new_total = total + by_bit[eta][bit]
                    if new not in extensions or extensions[new][3] < new_total:
                        extensions[new] = (new_total / (size + 1), size + 1, new, new_total, free, bit)
        best = sorted(extensions.values(), reverse=True)[:kept]
        kept = width
        beam = []
        for path, size, chosen, total, free, bit in best:
            moved = free
            if bit >= 0:  # a candidate has joined: those in conflict with it move up by one η
                near, others = conflicts[bit], ~(1 << bit)
                moved = [
                    (same & ~near | below & near) & able & others
                    for same, below, able in zip(free, [0, *free], passing, strict=False)
                ]
            beam.append((path, size, chosen, total, moved))
    bits = max(beam)[2]
    return sorted(
        (candidate for i, candidate in enumerate(worst_first) if bits >> i & 1), key=lambda scored: scored.span
    )


def conflicts_of(candidates: Sequence[ScoredSpan], overlap: float) -> list[int]:
    """Return the conflicts of each candidate, itself included, as a bit set: bit i for the i-th candidate."""
    if not candidates:
        return []
    start = np.array([candidate.span.start for candidate in candidates])
    end = np.array([candidate.span.end for candidate in candidates])
    shared = np.minimum(end[:, None], end) - np.maximum(start[:, None], start)  # (n, n), negative if apart
    length = end - start
    iou = shared / (length[:, None] + length - shared)
    rows = np.packbits(iou >= overlap, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def best_first(scored: Iterable[ScoredSpan]) -> list[ScoredSpan]:
    """Return each span once, best first; equals by position and label, so that the input order does not matter."""
    best: dict[Span, ScoredSpan] = {}
    for candidate in sorted(scored, key=lambda s: (-s.score, s.span.start, s.span.end, s.span.label)):
        best.setdefault(candidate.span, candidate)
    return list(best.values())


def check_settings(
    width: int = 1, overlap: float = ANY_OVERLAP, decay: float = 0.0, threshold: float = 0.0, starts: int = 0
) -> None:
    """Raise one error with all problems of the settings."""
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
