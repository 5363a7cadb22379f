from __future__ import annotations

import numpy as np
import pytest

from spanshot.decode.conflicts import FLAT, KeepAll
from spanshot.decode.decoders import TagDecoder
from spanshot.decode.scores import SpanScores, TokenScores
from spanshot.decode.spans import SpanDecoder
from spanshot.decode.transitions import Transitions
from spanshot.types import Span


def token_scores(*rows: list[float], tags: tuple[str, ...] = ("O", "city", "day")) -> TokenScores:
    return TokenScores(tags, np.array(rows))


def test_without_transitions_each_word_has_its_best_tag():
    found = TagDecoder("io")(token_scores([0, 2, 1], [0, 3, 1], [5, 0, 0], [0, 0, 1]))
    assert [one.span for one in found] == [Span(0, 2, "city"), Span(3, 4, "day")]


def test_a_span_is_as_sure_as_its_words_on_average():
    (one,) = TagDecoder("io")(token_scores([0, 2, 0], [0, 3, 0]))
    wanted = (np.exp(2) / (np.exp(2) + 2) + np.exp(3) / (np.exp(3) + 2)) / 2
    assert one.score == pytest.approx(wanted)


def test_transitions_can_overrule_a_word():
    lonely = token_scores([0, 3, 0], [1, 0, 0], [0, 3, 0])
    never_leave = Transitions(np.zeros(3), np.where(np.eye(3) > 0, 0.0, -9.0), np.zeros(3))
    assert [one.span for one in TagDecoder("io")(lonely)] == [Span(0, 1, "city"), Span(2, 3, "city")]
    assert [one.span for one in TagDecoder("io", never_leave)(lonely)] == [Span(0, 3, "city")]


def test_an_o_bias_finds_more():
    scores = token_scores([1, 0.5, 0], [1, 0, 0])
    assert TagDecoder("io")(scores) == []
    assert [one.span for one in TagDecoder("io")(scores, o_bias=0.7)] == [Span(0, 1, "city")]
    assert scores.scores[0, 0] == 1  # what was given is left as it was


def test_a_tag_without_any_score_is_never_chosen_and_harms_nothing():
    scores = token_scores([-np.inf, 1, 0], [-np.inf, 0, 1])
    flat = Transitions(np.zeros(3), np.zeros((3, 3)), np.zeros(3))
    for decoder in (TagDecoder("io"), TagDecoder("io", flat)):
        assert [one.span.label for one in decoder(scores)] == ["city", "day"]
        assert all(0 < one.score <= 1 for one in decoder(scores))


def test_tags_of_bio_part_spans_that_touch():
    scores = token_scores([0, 2, 0], [0, 2, 0], [0, 0, 2], tags=("O", "B-city", "I-city"))
    assert [one.span for one in TagDecoder("bio")(scores)] == [Span(0, 1, "city"), Span(1, 3, "city")]


def test_spans_are_decoded_by_the_resolver():
    scores = SpanScores(("city",), np.array([[0, 1], [0, 2]]), np.array([[0.0, 1.0], [0.0, 2.0]]))
    assert SpanDecoder(FLAT)(scores) == FLAT(SpanDecoder(KeepAll())(scores))
    assert [one.span for one in SpanDecoder(FLAT)(scores)] == [Span(0, 2, "city")]
