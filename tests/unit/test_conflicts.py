from __future__ import annotations

import doctest
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import pytest

from spanshot.decode import conflicts
from spanshot.decode.conflicts import (
    FLAT,
    NESTED,
    RESOLVERS,
    BeamSearch,
    BeamSoftNMS,
    Greedy,
    KeepAll,
    Resolver,
    SoftNMS,
)
from spanshot.errors import ConfigError
from spanshot.types import ScoredSpan, Span


def scored(start: int, end: int, score: float, label: str = "x") -> ScoredSpan:
    return ScoredSpan(Span(start, end, label), score)


everyone = pytest.mark.parametrize("resolve", [make() for make in RESOLVERS.values()], ids=list(RESOLVERS))


def test_the_examples_in_the_docstrings_hold():
    result = doctest.testmod(conflicts)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_module_needs_no_torch():
    program = "import sys, spanshot.decode.conflicts; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@everyone
def test_no_spans_resolve_to_no_spans(resolve: Resolver):
    assert resolve([]) == []


@everyone
def test_a_lone_confident_span_stays(resolve: Resolver):
    assert resolve([scored(2, 4, 0.8)]) == [scored(2, 4, 0.8)]


@everyone
def test_spans_apart_all_stay_and_come_back_sorted_by_position(resolve: Resolver):
    given = [scored(7, 9, 0.9), scored(0, 2, 0.3), scored(2, 3, 0.6)]
    assert resolve(given) == [given[1], given[2], given[0]]


@everyone
def test_a_span_given_twice_counts_once_with_its_best_score(resolve: Resolver):
    assert resolve([scored(0, 2, 0.4), scored(0, 2, 0.7), scored(0, 2, 0.5)]) == [scored(0, 2, 0.7)]


@everyone
def test_a_resolver_takes_any_iterable_and_leaves_it_as_it_was(resolve: Resolver):
    given = [scored(3, 4, 0.5), scored(0, 1, 0.9)]
    copy = list(given)
    assert resolve(iter(given)) == resolve(given)
    assert given == copy


@everyone
def test_resolvers_with_equal_settings_are_equal_and_cannot_be_changed(resolve: Resolver):
    assert type(resolve)() == resolve
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        resolve.width = 3


def test_keeping_all_keeps_overlapping_spans_too():
    given = [scored(0, 3, 0.2), scored(1, 2, 0.9), scored(1, 2, 0.8, "y")]
    assert KeepAll()(given) == given


def test_greedy_prefers_the_better_of_two_that_share_a_word():
    assert Greedy()([scored(0, 3, 0.6), scored(2, 5, 0.7)]) == [scored(2, 5, 0.7)]


def test_greedy_lets_back_in_what_only_a_refused_span_stood_against():
    first, middle, last = scored(0, 3, 0.9), scored(2, 5, 0.8), scored(4, 6, 0.1)
    assert Greedy()([first, middle, last]) == [first, last]


def test_spans_that_touch_without_a_shared_word_do_not_conflict():
    given = [scored(0, 2, 0.9), scored(2, 4, 0.8)]
    for resolve in (Greedy(), SoftNMS(), BeamSearch(), FLAT, NESTED):
        assert resolve(given) == given


def test_the_same_words_under_two_labels_conflict():
    city, person = scored(0, 2, 0.9, "city"), scored(0, 2, 0.8, "person")
    for resolve in (Greedy(), SoftNMS(), BeamSearch(), FLAT):
        assert resolve([person, city]) == [city]


def test_soft_nms_decays_once_for_each_conflict():
    left, right, across = scored(0, 2, 0.9), scored(2, 4, 0.9), scored(1, 3, 0.8)  # 0.8 * 0.5 * 0.5 = 0.2
    assert SoftNMS(overlap=0.3, decay=0.5, threshold=0.15)([left, right, across]) == [left, across, right]
    assert SoftNMS(overlap=0.3, decay=0.5, threshold=0.25)([left, right, across]) == [left, right]


def test_overlap_is_reached_by_exactly_that_share_of_words():
    whole, half = scored(0, 4, 0.9), scored(0, 2, 0.8)  # intersection over union is 2 of 4 words
    for make in (SoftNMS, BeamSoftNMS):
        assert make(overlap=0.5, decay=0.0)([whole, half]) == [whole]
        assert make(overlap=0.51, decay=0.0)([whole, half]) == [half, whole]


def test_a_score_equal_to_the_threshold_is_not_enough():
    for make in (SoftNMS, BeamSoftNMS):
        assert make(threshold=0.5)([scored(0, 1, 0.5)]) == []
        decayed_to_a_quarter = [scored(0, 1, 1.0), scored(0, 1, 0.5, "y")]
        assert len(make(overlap=0.5, decay=0.5, threshold=0.25)(decayed_to_a_quarter)) == 1
        assert len(make(overlap=0.5, decay=0.5, threshold=0.24)(decayed_to_a_quarter)) == 2


def test_beams_take_one_long_span_over_two_of_a_lower_mean_where_greedy_does_not():
    long, first, second = scored(0, 4, 0.8), scored(0, 2, 0.85), scored(2, 4, 0.7)
    assert Greedy()([long, first, second]) == [first, second]
    assert BeamSearch()([long, first, second]) == [long]
    assert FLAT([long, first, second]) == [long]


def test_a_span_far_away_can_change_what_a_beam_chooses_because_path_scores_are_means():
    long, first, second = scored(0, 4, 0.8), scored(0, 2, 0.85), scored(2, 4, 0.7)
    far = scored(8, 9, 0.2)  # 0.8 against 0.775 becomes 0.5 against 0.583
    assert FLAT([long, first, second]) == [long]
    assert FLAT([long, first, second, far]) == [first, second, far]


def test_a_narrow_beam_misses_what_a_wider_one_finds():
    # The best set, b and c (mean 0.8), starts from the second-best span.
    a, b, c = scored(0, 4, 0.85), scored(3, 6, 0.83), scored(0, 3, 0.77)
    d = scored(4, 6, 0.2)  # must join a: mean 0.525
    assert replace(FLAT, width=1)([a, b, c, d]) == [a, d]
    assert replace(FLAT, width=2)([a, b, c, d]) == [c, b]


def test_bsnms_follows_the_example_worked_by_hand():
    # a and b share 2 of 4 words, c and d 1 of 3; a and c are apart. decay 0.5, threshold 0.3, width 2.
    a, b = scored(0, 4, 0.9), scored(0, 2, 0.8)
    c, d = scored(5, 7, 0.7), scored(6, 8, 0.64)
    # step 1: a 0.9, b 0.8
    # step 2: ac 0.8, ad 0.77, ab (0.9 + 0.4) / 2 = 0.65; bc 0.75, bd 0.72, ba (0.8 + 0.45) / 2 = 0.625
    #         -> ac, ad
    # step 3: acb (1.6 + 0.4) / 3 = 0.667, acd (1.6 + 0.32) / 3 = 0.64
    #         adb (1.54 + 0.4) / 3 = 0.647, adc (1.54 + 0.35) / 3 = 0.63 (the set of acd, by a worse path)
    #         -> abc, abd
    # step 4: abcd = (2.0 + 0.32) / 4 = 0.58 or (1.94 + 0.35) / 4; all are in
    bsnms = BeamSoftNMS(width=2, overlap=0.1, decay=0.5, threshold=0.3)
    assert bsnms([a, b, c, d]) == [b, a, c, d]
    # With threshold 0.33 d may not join c (0.32) but c may join d (0.35): abc is closed at 0.667 and beats
    # abdc = (1.94 + 0.35) / 4 = 0.5725.
    assert replace(bsnms, threshold=0.33)([a, b, c, d]) == [b, a, c]
    # With threshold 0.42 only a can join b (0.45), in no beam of width 2: ac is closed at 0.8.
    assert replace(bsnms, threshold=0.42)([a, b, c, d]) == [a, c]


def test_a_closed_state_stays_in_the_beam_and_can_win():
    closed = scored(0, 9, 0.9)  # conflicts with all others
    others = [scored(0, 3, 0.95), scored(3, 6, 0.8), scored(6, 9, 0.7)]
    assert replace(FLAT, width=2)([closed, *others]) == [closed]


def test_nested_settings_keep_a_nested_span_and_flat_settings_do_not():
    outer, inner = scored(0, 4, 0.9, "protein"), scored(0, 2, 0.6, "DNA")
    assert NESTED([outer, inner]) == [inner, outer]
    assert FLAT([outer, inner]) == [outer]


def test_bsnms_with_nested_settings_may_choose_fewer_when_it_resolves_its_own_answer():
    # a may join b (0.14) but b not a (0.084): alone with e, a makes a closed set of the better mean.
    a, b, e = scored(3, 4, 0.35), scored(1, 4, 0.21), scored(6, 7, 0.88)
    c, d = scored(3, 7, 0.79), scored(0, 3, 0.15)
    assert NESTED([a, b, c, d, e]) == [b, a, e]
    assert NESTED([a, b, e]) == [a, e]


def test_of_equal_path_scores_the_larger_set_wins_and_then_the_leftmost():
    whole, first, second = scored(0, 4, 1.0), scored(0, 2, 1.0), scored(2, 4, 1.0)
    assert FLAT([whole, first, second]) == [first, second]
    assert FLAT([scored(1, 3, 0.5), scored(0, 2, 0.5)]) == [scored(0, 2, 0.5)]


def test_from_the_single_best_span_a_flat_search_never_leaves_that_span_out():
    best, left, right = scored(1, 3, 0.9), scored(0, 2, 0.89), scored(2, 4, 0.89)
    far = scored(6, 7, 0.2)
    released = replace(FLAT, starts=1)
    assert released([best, left, right, far]) == [best, far]
    assert FLAT([best, left, right, far]) == [left, right, far]


def test_the_constants_are_the_papers_settings():
    assert (FLAT.overlap, FLAT.decay, FLAT.threshold, FLAT.width) == (1e-5, 1e-5, 0.1, 5)
    assert (NESTED.overlap, NESTED.decay, NESTED.threshold, NESTED.width) == (0.1, 0.4, 0.1, 5)
    assert BeamSoftNMS() == FLAT


def test_the_table_names_every_strategy():
    assert list(RESOLVERS) == ["none", "greedy", "soft_nms", "beam", "bsnms"]


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (BeamSearch, {"width": 0}, "width must be at least 1; found 0"),
        (BeamSoftNMS, {"width": -1}, "width must be at least 1; found -1"),
        (SoftNMS, {"overlap": 0.0}, "overlap must be above 0 and at most 1; found 0.0"),
        (SoftNMS, {"overlap": 1.5}, "overlap must be above 0 and at most 1; found 1.5"),
        (BeamSoftNMS, {"decay": 1.1}, "decay must be from 0 to 1; found 1.1"),
        (SoftNMS, {"decay": -0.1}, "decay must be from 0 to 1; found -0.1"),
        (BeamSoftNMS, {"threshold": 1.0}, "threshold must be at least 0 and below 1; found 1.0"),
        (BeamSoftNMS, {"starts": -1}, "starts must be 0 (as many as the beam is wide) or more; found -1"),
        (SoftNMS, {"threshold": float("nan")}, "threshold must be at least 0 and below 1; found nan"),
    ],
)
def test_an_impossible_setting_is_refused_with_what_was_found(make, settings, message):
    with pytest.raises(ConfigError) as error:
        make(**settings)
    assert str(error.value) == message


def test_all_impossible_settings_are_named_at_once():
    with pytest.raises(ConfigError, match=r"width .*; overlap .*; decay .*; threshold "):
        BeamSoftNMS(width=0, overlap=0, decay=2, threshold=2)
