"""Run Beam Soft-NMS step by step, in a plain and slow way that can be shown.

The result is checked against `spanshot.decode.conflicts.BeamSoftNMS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spanshot.decode.conflicts import BeamSoftNMS
from spanshot.types import ScoredSpan


@dataclass(frozen=True)
class State:
    """A set of spans in the beam, by their numbers, best first."""

    spans: tuple[int, ...]
    contributions: tuple[float, ...]
    """Score of each span in `spans` after decay."""
    kept: bool = True
    """Whether the state is among the best of its step."""

    @property
    def path_score(self) -> float:
        """The mean contribution."""
        return sum(self.contributions) / len(self.contributions)


def conflict(first: ScoredSpan, second: ScoredSpan, overlap: float) -> bool:
    """Return whether two spans share at least `overlap` of their words (intersection over union)."""
    shared = min(first.span.end, second.span.end) - max(first.span.start, second.span.start)
    union = len(first.span) + len(second.span) - shared
    return shared > 0 and shared / union >= overlap


def trace(candidates: Sequence[ScoredSpan], search: BeamSoftNMS) -> list[list[State]]:
    """Return the states of each step, best first, with the pruned ones marked. `candidates` are sorted best first."""
    steps: list[list[State]] = []
    beam = [State((), ())]
    while True:
        found: dict[frozenset[int], State] = {}
        grown = False
        for state in beam:
            extensions = list(_extensions(state, candidates, search))
            grown = grown or bool(extensions)
            for new in extensions or [state]:
                best = found.get(frozenset(new.spans))
                if best is None or best.path_score < new.path_score:
                    found[frozenset(new.spans)] = new
        if not grown:
            break
        ranked = sorted(found.values(), key=lambda state: (-state.path_score, -len(state.spans)))
        steps.append([State(s.spans, s.contributions, rank < search.width) for rank, s in enumerate(ranked)])
        beam = [state for state in steps[-1] if state.kept]
    chosen = {candidates[number].span for number in beam[0].spans}
    expected = {scored.span for scored in search(candidates)}
    if chosen != expected:
        raise AssertionError(f"the trace ends with {chosen}, BeamSoftNMS with {expected}")
    return steps


def _extensions(state: State, candidates: Sequence[ScoredSpan], search: BeamSoftNMS) -> list[State]:
    result = []
    for number, candidate in enumerate(candidates):
        if number in state.spans:
            continue
        conflicts = sum(conflict(candidate, candidates[other], search.overlap) for other in state.spans)
        score = candidate.score * search.decay**conflicts
        if score > search.threshold:
            result.append(State((*state.spans, number), (*state.contributions, score)))
    return result
