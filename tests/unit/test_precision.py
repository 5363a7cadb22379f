from __future__ import annotations

import warnings

import pytest

import spanshot
from spanshot.errors import ConfigError, SpanshotWarning
from spanshot.examples.leave_one_out import ExampleResults, TaggedExample
from spanshot.examples.precision import choose_thresholds
from spanshot.types import Entity, LearnOptions, Sentence, Span
from word_encoder import word_model

EXAMPLES = ["we saw [Oslo](city) today", "we saw [Rome](city) today", "we saw [Lima](city) now", "we saw nothing here"]


def results(*scored: tuple[float, bool]) -> ExampleResults:
    """One sentence for each suggestion."""
    tagged = []
    for number, (score, is_right) in enumerate(scored):
        sentence = Sentence(("Oslo", "x"), (Span(0, 1, "city"),) if is_right else ())
        entity = Entity("Oslo", "city", 0, 4, score)
        tagged.append(TaggedExample(number, sentence, (), frozenset({"city"}), (entity,)))
    return ExampleResults(tuple(tagged), len(tagged))


def chosen(target: float, *scored: tuple[float, bool]):
    return choose_thresholds(results(*scored), ("city",), target)["city"]


def test_the_lowest_threshold_with_the_target_precision_is_chosen():
    right, wrong = [(0.9 - n / 100, True) for n in range(20)], [(0.5 - n / 100, False) for n in range(10)]
    choice = chosen(0.94, *right, *wrong)
    assert 0.5 < choice.threshold < 0.71
    assert choice.precision >= 0.94
    assert (choice.right, choice.suggestions) == (20, 20)


def test_a_higher_target_never_lowers_the_threshold():
    scored = [(0.95 - n / 50, n % 4 != 3) for n in range(40)]
    thresholds = [chosen(target, *scored).threshold for target in (0.5, 0.6, 0.7, 0.8)]
    assert thresholds == sorted(thresholds)


def test_few_right_suggestions_with_low_scores_do_not_lower_the_threshold_far():
    assert chosen(0.8, (0.9, True), (0.1, True), (0.05, True)).threshold >= 0.4


def test_an_untested_label_is_judged_by_its_scores():
    assert chosen(0.9).threshold == 0.9


def test_a_target_out_of_reach_is_reported_with_what_to_expect():
    choice = chosen(0.9, (0.8, True), (0.7, False))
    assert choice.expectation() == (
        "expect about 0.84 with the threshold 0.75 (in leave-one-out, 1 of 1 suggestions are right)"
    )
    assert chosen(0.9, (0.2, True)).expectation() == "in leave-one-out, no suggestion has a score that is high enough"
    with pytest.warns(SpanshotWarning, match=r"precision 0.999 cannot be reached for 'city': .*; add examples"):
        tagger = word_model().learn(EXAMPLES, precision=0.999)
    assert set(tagger.options.threshold) == {"city"}


def test_adding_examples_chooses_the_thresholds_anew():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanshotWarning)
        model = word_model()
        added = model.learn(EXAMPLES[:3], precision=0.6).add(EXAMPLES[3:])
        assert added == model.learn(EXAMPLES, precision=0.6)


def test_a_threshold_replaces_the_target():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanshotWarning)
        tagger = word_model().learn(EXAMPLES, precision=0.6).with_options(LearnOptions(threshold=0.2))
    assert tagger.options == LearnOptions(threshold=0.2)


@pytest.mark.parametrize("precision", [0, 1, 1.5, -0.1])
def test_a_target_must_be_between_0_and_1(precision):
    with pytest.raises(ConfigError, match="precision must be between 0 and 1"):
        word_model().learn(EXAMPLES, precision=precision)


def test_threshold_and_target_exclude_each_other():
    with pytest.raises(ConfigError, match="either a threshold or a target precision"):
        spanshot.learn(EXAMPLES, precision=0.9, threshold=0.5, model=word_model())
