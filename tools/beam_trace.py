"""Run Beam Soft-NMS step by step, in a plain and slow way that can be shown.

The result is checked against `spanshot.decode.conflicts.BeamSoftNMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spanshot.decode.conflicts import BeamSoftNMS
from spanshot.types import ScoredSpan, Span

KEPT, CLOSED, PRUNED, SAME, FILTERED = "kept", "closed", "pruned", "same", "filtered"
"""What becomes of a state: it stays in the beam; it stays, but nothing can join it; its path score is too low for the
beam; another state has the same spans; the decayed score of its last span is too low."""
TINY = 1e-12

Decay = Callable[[float, int], float]
"""Returns a score after a number of conflicts."""

# The example in the captions of figure 3 and appendix D: beam size 2, threshold 0.6, every conflict costs 0.1. The
# scores are ours: the paper's text gives only one number, 0.58 for span 2 after its conflicts with spans 1 and 3.
PAPER_SPANS = (
    ScoredSpan(Span(0, 3, "PER"), 0.90),
    ScoredSpan(Span(2, 4, "PER"), 0.79),
    ScoredSpan(Span(2, 6, "ORG"), 0.78),
    ScoredSpan(Span(5, 7, "ORG"), 0.65),
)
PAPER_NAMES = "1324"
"""The paper's numbers of these spans, best first."""
PAPER_SEARCH = BeamSoftNMS(width=2, overlap=1e-5, decay=1.0, threshold=0.6)


def paper_decay(score: float, conflicts: int) -> float:
    """Lower a score by 0.1 for each conflict, as in the captions."""
    return score - 0.1 * conflicts


@dataclass(frozen=True)
class State:
    """A set of spans, by their numbers in the order in which they joined."""

    spans: tuple[int, ...]
    contributions: tuple[float, ...]
    """Score of each span in `spans` after decay (DS in the paper)."""
    fate: str = KEPT
    reason: str = ""
    """Why the state is not in the beam."""

    @property
    def path_score(self) -> float:
        """The mean contribution (PS in the paper)."""
        return sum(self.contributions) / len(self.contributions)

    @property
    def kept(self) -> bool:
        """Whether the state is in the beam after its step."""
        return self.fate in (KEPT, CLOSED)

    def name(self, names: str) -> str:
        """Return the state as the paper writes it, such as 1-3-4."""
        return "-".join(names[number] for number in self.spans)


def conflict(first: ScoredSpan, second: ScoredSpan, overlap: float) -> bool:
    """Return whether two spans share at least `overlap` of their words (intersection over union)."""
    shared = min(first.span.end, second.span.end) - max(first.span.start, second.span.start)
    union = len(first.span) + len(second.span) - shared
    return shared > 0 and shared / union >= overlap


def trace(
    candidates: Sequence[ScoredSpan], search: BeamSoftNMS, names: str = "abcdefghijklmnop", decay: Decay | None = None
) -> list[list[State]]:
    """Return the states of each step: those of the beam, best first, then the others with the reason.

    `candidates` are sorted best first. The first state of the last step is the result. With another `decay` than that
    of `search`, the result is not checked.
    """
    decayed = decay or (lambda score, conflicts: score * search.decay**conflicts)
    steps: list[list[State]] = []
    beam = [State((), ())]
    tried: set[tuple[int, ...]] = set()
    while True:
        formed: list[State] = []
        filtered: list[State] = []
        for state in beam:
            passed, failed = _extensions(state, candidates, search, decayed)
            if state.spans not in tried:
                filtered += failed
            tried.add(state.spans)
            formed += passed or ([replace(state, fate=CLOSED)] if state.spans else [])
        grown = any(state.fate != CLOSED for state in formed)
        if not grown and not filtered:
            break
        limit = (search.starts or search.width) if not steps else search.width
        beam, dropped = _pruned(formed, len(candidates), limit, names)
        steps.append([*beam, *dropped, *filtered])
        if not grown:
            break
    if decay is None:
        _check(candidates, search, beam[0])
    return steps


def _extensions(
    state: State, candidates: Sequence[ScoredSpan], search: BeamSoftNMS, decayed: Decay
) -> tuple[list[State], list[State]]:
    """Return the states that one more span gives, and those that fail because its decayed score is too low."""
    passed, failed = [], []
    for number, candidate in enumerate(candidates):
        if number in state.spans:
            continue
        conflicts = sum(conflict(candidate, candidates[other], search.overlap) for other in state.spans)
        score = decayed(candidate.score, conflicts)
        new = State((*state.spans, number), (*state.contributions, score))
        if score > search.threshold:
            passed.append(new)
        else:
            reason = f"decayed score {score:.2f} is not above {search.threshold:g}"
            failed.append(replace(new, fate=FILTERED, reason=reason))
    return passed, failed


def _pruned(states: Sequence[State], candidates: int, limit: int, names: str) -> tuple[list[State], list[State]]:
    """Return the states of the new beam, best first, and the others: duplicates, and those beyond the limit."""
    best: dict[frozenset[int], State] = {}
    dropped: list[State] = []
    for state in states:
        key = frozenset(state.spans)
        known = best.get(key)
        if known is None:
            best[key] = state
            continue
        loser, winner = (state, known) if state.path_score <= known.path_score + TINY else (known, state)
        best[key] = winner
        dropped.append(replace(loser, fate=SAME, reason=f"the same spans as {winner.name(names)}"))
    ranked = sorted(best.values(), key=lambda state: _rank(state, candidates), reverse=True)
    reason = f"not among the {limit} best path scores"
    return ranked[:limit], [*(replace(state, fate=PRUNED, reason=reason) for state in ranked[limit:]), *dropped]


def _rank(state: State, candidates: int) -> tuple[float, int, int]:
    """Order states by path score, then size, then the best span that the other lacks."""
    bits = sum(1 << candidates - 1 - number for number in state.spans)
    return round(state.path_score, 12), len(state.spans), bits


def _check(candidates: Sequence[ScoredSpan], search: BeamSoftNMS, result: State) -> None:
    chosen = {candidates[number].span for number in result.spans}
    expected = {scored.span for scored in search(candidates)}
    if chosen != expected:
        raise AssertionError(f"the trace ends with {chosen}, BeamSoftNMS with {expected}")
