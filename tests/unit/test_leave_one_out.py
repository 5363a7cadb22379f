from __future__ import annotations

import pytest

from spanshot.errors import EpisodeError
from spanshot.evaluation.counts import Counts
from spanshot.examples.leave_one_out import leave_one_out, unmarked
from spanshot.formats.inline import parse_inline
from spanshot.types import ScoredSpan, Span


class ByHeart:
    """Finds the very words that it was shown, under the label that it last saw them with."""

    def __init__(self) -> None:
        self.shown: list[int] = []

    def fit(self, support):
        self.shown.append(len(support.sentences))
        known = {s.words[x.start]: x.label for s in support.sentences for x in s.spans}

        def tag(sentences):
            assert not any(s.spans for s in sentences)
            return [
                [ScoredSpan(Span(at, at + 1, known[word]), 0.9) for at, word in enumerate(s.words) if word in known]
                for s in sentences
            ]

        return tag


def held_out(*lines: str):
    method = ByHeart()
    return leave_one_out(method, [parse_inline(line) for line in lines]), method


def test_each_example_is_tagged_by_what_the_others_teach():
    found, method = held_out("in [Oslo](city)", "to [Oslo](city)", "see [Rome](city) and [Ada](person)")
    assert method.shown == [2, 2, 2]
    assert [len(one.found) for one in found.held] == [1, 1, 0]
    assert found.by_label == {"city": Counts(tp=2, fn=1)}
    assert found.lonely == ("person",)
    assert found.total.f1 == pytest.approx(0.8)


def test_confusions_name_the_marked_and_the_found_label():
    found, _ = held_out("in [Oslo](city)", "to [Oslo](club)", "[Rome](city) [Inter](club)")
    assert found.confusions == {("city", "club"): 1, ("club", "city"): 1}


def test_what_is_found_beside_all_marks_may_have_been_forgotten():
    found, _ = held_out("in [Oslo](city)", "Oslo and [Rome](city)")
    assert unmarked(found.held[1]) == [Span(0, 1, "city")]
    assert unmarked(found.held[0]) == []


def test_doubles_are_held_out_together():
    found, method = held_out("in [Oslo](city)", "in [Oslo](city)", "to [Rome](city)")
    assert sorted(method.shown) == [1, 2]
    assert found.total == Counts(fn=3)


def test_of_many_examples_several_are_held_out_at_once():
    seen = []
    sentences = [parse_inline(f"w{number} [Oslo](city)") for number in range(60)]
    method = ByHeart()
    found = leave_one_out(method, sentences, lambda done, of: seen.append((done, of)))
    assert len(method.shown) == 25
    assert seen[-1] == (25, 25)
    assert [one.number for one in found.held] == list(range(60))
    assert found.total.f1 == 1.0


@pytest.mark.parametrize("lines", [["in [Oslo](city)"], ["nothing", "at all"], ["a [b](c)", "a [b](c)"]])
def test_too_few_examples_are_refused(lines):
    with pytest.raises(EpisodeError):
        held_out(*lines)
