"""The trace of Beam Soft-NMS that the pictures are drawn from."""

from __future__ import annotations

import random

import pytest

from beam_trace import CLOSED, FILTERED, KEPT, PAPER_NAMES, PAPER_SEARCH, PAPER_SPANS, PRUNED, SAME, paper_decay, trace
from spanshot.decode.conflicts import BeamSoftNMS
from spanshot.decode.spans import best_first
from spanshot.types import ScoredSpan, Span


def paper_states() -> list[dict[str, set[str]]]:
    """The states of each step of the paper's example, by fate."""
    steps = []
    for states in trace(PAPER_SPANS, PAPER_SEARCH, PAPER_NAMES, paper_decay):
        by_fate: dict[str, set[str]] = {}
        for state in states:
            by_fate.setdefault(state.fate, set()).add(state.name(PAPER_NAMES))
        steps.append(by_fate)
    return steps


def test_the_paper_s_example_goes_through_the_states_of_its_captions():
    assert paper_states() == [
        {KEPT: {"1", "3"}, PRUNED: {"2", "4"}},
        {KEPT: {"1-3", "1-2"}, PRUNED: {"1-4", "3-4", "3-2"}, SAME: {"3-1"}},
        {KEPT: {"1-3-4"}, CLOSED: {"1-2"}, FILTERED: {"1-3-2", "1-2-3", "1-2-4"}},
        {CLOSED: {"1-2", "1-3-4"}, FILTERED: {"1-3-4-2"}},
    ]


def test_the_paper_s_example_ends_with_the_state_of_its_caption():
    last = trace(PAPER_SPANS, PAPER_SEARCH, PAPER_NAMES, paper_decay)[-1]
    assert last[0].name(PAPER_NAMES) == "1-2"


def test_span_2_has_the_decayed_score_of_the_caption_after_spans_1_and_3():
    third = trace(PAPER_SPANS, PAPER_SEARCH, PAPER_NAMES, paper_decay)[2]
    (state,) = (state for state in third if state.name(PAPER_NAMES) == "1-3-2")
    assert state.contributions[-1] == pytest.approx(0.58)
    assert state.reason == "decayed score 0.58 is not above 0.6"


@pytest.mark.parametrize("seed", range(20))
def test_a_trace_ends_with_the_spans_that_the_search_returns(seed):
    rng = random.Random(seed)
    scored = []
    for _ in range(6):
        start = rng.randrange(8)
        scored.append(ScoredSpan(Span(start, start + rng.randint(1, 4), rng.choice("xy")), rng.random()))
    search = BeamSoftNMS(rng.choice((1, 2, 3)), rng.choice((1e-5, 0.3)), rng.choice((1e-5, 0.4, 0.9)), 0.1)
    candidates = [one for one in best_first(scored) if one.score > search.threshold]
    if not candidates:
        pytest.skip("no span is above the threshold")
    steps = trace(candidates, search)  # raises if the result differs
    dropped = [state for states in steps for state in states if not state.kept]
    assert all(state.reason for state in dropped)
    assert all(sum(state.kept for state in states) <= search.width for states in steps)
