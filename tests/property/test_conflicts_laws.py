from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanshot.decode.conflicts import (
    FLAT,
    NESTED,
    BeamSearch,
    BeamSoftNMS,
    Greedy,
    KeepAll,
    Resolver,
    SoftNMS,
)
from spanshot.types import ScoredSpan, Span
from strategies_spans import decays, overlaps, scored_spans, scores, thresholds

SOFT_NESTED = SoftNMS(overlap=0.1, decay=0.4, threshold=0.1)
NARROW = replace(NESTED, width=2)

ALL = {
    "none": KeepAll(),
    "greedy": Greedy(),
    "soft_nms": SoftNMS(),
    "soft_nms_nested": SOFT_NESTED,
    "beam": BeamSearch(),
    "bsnms": FLAT,
    "bsnms_nested": NESTED,
    "bsnms_narrow": NARROW,
}


def each(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("resolve", [ALL[name] for name in names], ids=names)


def iou(one: Span, other: Span) -> float:
    mine, theirs = set(range(one.start, one.end)), set(range(other.start, other.end))
    return len(mine & theirs) / len(mine | theirs)


def moved(scored: list[ScoredSpan], by: int) -> list[ScoredSpan]:
    return [ScoredSpan(Span(s.span.start + by, s.span.end + by, s.span.label), s.score) for s in scored]


@each(*ALL)
@given(scored=scored_spans())
def test_what_stays_was_given_with_its_own_score_and_is_sorted_without_repeats(
    resolve: Resolver, scored: list[ScoredSpan]
):
    stayed = resolve(scored)
    assert set(stayed) <= set(scored)
    assert stayed == sorted(set(stayed), key=lambda s: s.span)


@each(*ALL)
@given(scored=scored_spans(), data=st.data())
def test_the_order_of_the_input_is_no_matter(resolve: Resolver, scored: list[ScoredSpan], data: st.DataObject):
    assert resolve(data.draw(st.permutations(scored))) == resolve(scored)


@each(*ALL)
@given(scored=scored_spans(), by=st.integers(1, 50))
def test_where_in_the_sentence_the_spans_are_is_no_matter(resolve: Resolver, scored: list[ScoredSpan], by: int):
    assert resolve(moved(scored, by)) == moved(resolve(scored), by)


@each(*ALL)
@given(scored=scored_spans())
def test_something_stays_if_anything_scores_above_the_threshold(resolve: Resolver, scored: list[ScoredSpan]):
    if any(s.score > 0.1 for s in scored):
        assert resolve(scored)


@each("greedy", "soft_nms", "beam", "bsnms")
@given(scored=scored_spans())
def test_flat_settings_never_leave_a_shared_word(resolve: Resolver, scored: list[ScoredSpan]):
    for one, other in combinations(resolve(scored), 2):
        assert not one.span.overlaps(other.span)


@each("greedy", "beam")
@given(scored=scored_spans())
def test_what_a_hard_strategy_drops_shares_a_word_with_what_stays(resolve: Resolver, scored: list[ScoredSpan]):
    stayed = resolve(scored)
    for dropped in set(scored) - set(stayed):
        assert any(dropped.span.overlaps(s.span) for s in stayed)


@each("soft_nms", "soft_nms_nested", "bsnms", "bsnms_nested", "bsnms_narrow")
@given(scored=scored_spans())
def test_what_a_soft_strategy_drops_could_not_have_joined(resolve: SoftNMS | BeamSoftNMS, scored: list[ScoredSpan]):
    stayed = resolve(scored)
    for dropped in set(scored) - set(stayed):
        conflicts = sum(iou(dropped.span, s.span) >= resolve.overlap for s in stayed)
        assert dropped.score * resolve.decay**conflicts <= resolve.threshold


# BSNMS with nested settings is not in this list: what closes a set depends on spans that did not stay.
@each("none", "greedy", "soft_nms", "soft_nms_nested", "beam", "bsnms")
@given(scored=scored_spans())
def test_resolving_again_changes_nothing(resolve: Resolver, scored: list[ScoredSpan]):
    once = resolve(scored)
    assert resolve(once) == once


# The beams are not in this list: their path scores are means, which a span far away shifts.
@each("none", "greedy", "soft_nms", "soft_nms_nested")
@given(scored=scored_spans(words=12), score=scores())
def test_a_span_far_away_does_not_change_the_others(resolve: Resolver, scored: list[ScoredSpan], score: float):
    far = ScoredSpan(Span(20, 22, "city"), score)
    assert [s for s in resolve([*scored, far]) if s != far] == resolve(scored)


@each("greedy", "soft_nms", "soft_nms_nested")
@given(scored=scored_spans())
def test_without_a_beam_the_best_span_always_stays(resolve: Resolver, scored: list[ScoredSpan]):
    best = max((s.score for s in scored), default=0.0)
    if best > 0.1:
        assert max(s.score for s in resolve(scored)) == best


@given(scored=scored_spans(), overlap=overlaps(), decay=decays(), threshold=thresholds())
def test_bsnms_with_a_beam_of_one_is_soft_nms(scored: list[ScoredSpan], overlap: float, decay: float, threshold: float):
    assert BeamSoftNMS(1, overlap, decay, threshold)(scored) == SoftNMS(overlap, decay, threshold)(scored)


@given(scored=scored_spans())
def test_beam_search_with_a_beam_of_one_is_greedy(scored: list[ScoredSpan]):
    assert BeamSearch(1)(scored) == Greedy()(scored)


@given(scored=scored_spans(), width=st.integers(1, 6))
def test_bsnms_that_forbids_conflicts_is_beam_search_on_what_exceeds_the_threshold(
    scored: list[ScoredSpan], width: int
):
    enough = [s for s in scored if s.score > 0.125]
    assert BeamSoftNMS(width, decay=0.0, threshold=0.125)(scored) == BeamSearch(width)(enough)


@given(scored=scored_spans(), width=st.integers(1, 6), overlap=overlaps(), threshold=thresholds())
def test_without_decay_bsnms_keeps_all_that_exceed_the_threshold(
    scored: list[ScoredSpan], width: int, overlap: float, threshold: float
):
    enough = [s for s in scored if s.score > threshold]
    assert BeamSoftNMS(width, overlap, 1.0, threshold)(scored) == KeepAll()(enough)
