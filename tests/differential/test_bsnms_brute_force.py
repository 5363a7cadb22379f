"""BSNMS against implementations written straight from §4.5 of the paper, slow and without any shortcut."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanshot.decode.conflicts import FLAT, NESTED, BeamSearch, BeamSoftNMS
from spanshot.types import ScoredSpan, Span
from strategies_spans import decays, overlaps, scored_spans, thresholds

Path = tuple[tuple[ScoredSpan, float], ...]  # spans in the order they joined, each with what it brought


def iou(one: ScoredSpan, other: ScoredSpan) -> float:
    mine = set(range(one.span.start, one.span.end))
    theirs = set(range(other.span.start, other.span.end))
    return len(mine & theirs) / len(mine | theirs)


def extensions(path: Path, given: list[ScoredSpan], setting: BeamSoftNMS) -> list[Path]:
    inside = [s for s, _ in path]
    found = []
    for s in given:
        if s in inside:
            continue
        eta = sum(iou(s, t) >= setting.overlap for t in inside)
        decayed = s.score * setting.decay**eta
        if decayed > setting.threshold:
            found.append((*path, (s, decayed)))
    return found


def path_score(path: Path) -> float:
    return sum(brought for _, brought in path) / len(path)


def members(path: Path) -> frozenset[ScoredSpan]:
    return frozenset(s for s, _ in path)


def rank(path: Path, given: list[ScoredSpan]):
    """Sorts the best first: path score, then size, then the better spans (by score, then position)."""
    order = sorted(given, key=lambda s: (-s.score, s.span))
    return (-path_score(path), -len(path), sorted(order.index(s) for s, _ in path))


def one_per_set(paths: list[Path]) -> list[Path]:
    best: dict[frozenset[ScoredSpan], Path] = {}
    for path in paths:
        key = members(path)
        if key not in best or path_score(path) > path_score(best[key]):
            best[key] = path
    return list(best.values())


def naive_beam(given: list[ScoredSpan], setting: BeamSoftNMS) -> list[ScoredSpan]:
    beam: list[Path] = [((s, s.score),) for s in given if s.score > setting.threshold]
    beam = sorted(beam, key=lambda path: rank(path, given))[: setting.starts or setting.width]
    while True:
        states: list[Path] = []
        for path in beam:
            states += extensions(path, given, setting) or [path]
        states = sorted(one_per_set(states), key=lambda path: rank(path, given))[: setting.width]
        if states == beam:
            return sorted(members(beam[0]), key=lambda s: s.span) if beam else []
        beam = states


def exhaustive(given: list[ScoredSpan], setting: BeamSoftNMS) -> list[ScoredSpan]:
    """The best of all sequences that nothing can join, found by trying every order."""
    complete: list[Path] = []

    def grow(path: Path) -> None:
        longer = extensions(path, given, setting)
        if not longer and path:
            complete.append(path)
        for each in longer:
            grow(each)

    grow(())
    if not complete:
        return []
    return sorted(members(min(complete, key=lambda path: rank(path, given))), key=lambda s: s.span)


@st.composite
def soft_settings(draw: st.DrawFn, width: st.SearchStrategy[int]) -> BeamSoftNMS:
    return BeamSoftNMS(draw(width), draw(overlaps()), draw(decays()), draw(thresholds()), draw(st.integers(0, 3)))


@settings(max_examples=300)
@given(given=scored_spans(words=8, max_size=9), setting=soft_settings(st.integers(1, 6)))
def test_bsnms_agrees_with_a_naive_beam(given: list[ScoredSpan], setting: BeamSoftNMS):
    assert setting(given) == naive_beam(given, setting)


@settings(max_examples=200)
@given(given=scored_spans(words=6, max_size=9), width=st.integers(1, 4), score=st.sampled_from([0.5, 1.0]))
def test_bsnms_agrees_with_a_naive_beam_where_all_scores_are_equal(given: list[ScoredSpan], width: int, score: float):
    equal = [ScoredSpan(s.span, score) for s in given]
    for setting in (BeamSoftNMS(width), BeamSoftNMS(width, 0.1, 0.5, 0.125)):
        assert setting(equal) == naive_beam(equal, setting)


@settings(max_examples=150)
@given(given=scored_spans(words=6, max_size=5), setting=soft_settings(st.just(200)))
def test_a_beam_wide_enough_for_every_set_finds_the_best_of_all_orders(given: list[ScoredSpan], setting: BeamSoftNMS):
    setting = replace(setting, starts=0)
    assert setting(given) == exhaustive(given, setting)


@settings(max_examples=100)
@given(given=scored_spans(words=8, max_size=9), width=st.integers(1, 5))
def test_beam_search_agrees_with_a_naive_beam_that_forbids_conflicts(given: list[ScoredSpan], width: int):
    positive = [s for s in given if s.score > 0]
    assert BeamSearch(width)(positive) == naive_beam(positive, BeamSoftNMS(width, 1e-5, 0.0, 0.0))


@pytest.mark.parametrize("setting", [FLAT, NESTED, BeamSoftNMS(3, 0.3, 0.7, 0.2)], ids=str)
def test_bsnms_agrees_with_a_naive_beam_on_sentences_of_a_real_size(setting: BeamSoftNMS):
    rng = random.Random(17)
    for _ in range(5):
        spans = set()
        while len(spans) < 25:
            start = rng.randrange(20)
            spans.add(Span(start, start + rng.randint(1, 8), rng.choice(["city", "date"])))
        given = [ScoredSpan(span, rng.random()) for span in sorted(spans)]
        assert setting(given) == naive_beam(given, setting)
