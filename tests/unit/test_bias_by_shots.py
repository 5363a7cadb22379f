"""An O bias that depends on how many examples a label has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanshot.decode.conflicts import KeepAll
from spanshot.decode.decoders import TagDecoder
from spanshot.decode.scores import SpanScores, TokenScores
from spanshot.decode.spans import SpanDecoder
from spanshot.formats.inline import parse_inline
from spanshot.research.checkpoint import new_method
from spanshot.research.training.settings import RunSettings
from spanshot.types import Span, SupportSet
from tiny import write_tiny_encoder

ONE_AND_FOUR = SupportSet.of(
    parse_inline(line)
    for line in ("[Oslo](city) and [Rome](city)", "[Lima](city) or [New York](city) with [Ada](person)")
)


@pytest.fixture(scope="module")
def method_of(tmp_path_factory):
    encoder = str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))

    def make(name: str, **settings: object):
        table = {
            "method": {"name": name, **settings},
            "data": {"kind": "episodes", "train": "none", "dev": "none"},
            "encoder": {"name": encoder},
        }
        return new_method(RunSettings.of(table)).eval()

    return make


@pytest.mark.parametrize("name", ["esd", "retriever"])
def test_four_examples_halve_a_labels_share_of_the_bias(method_of, name):
    shares = method_of(name, bias_by_shots=True).fit(ONE_AND_FOUR).bias_shares
    assert dict(zip(ONE_AND_FOUR.labels, shares, strict=True)) == {"city": 0.5, "person": 1.0}


@pytest.mark.parametrize("name", ["proto", "nnshot", "structshot", "matching", "tapnet_cdt"])
def test_every_tag_of_a_label_has_the_labels_share(method_of, name):
    tagger = method_of(name, bias_by_shots=True, scheme="bio").fit(ONE_AND_FOUR)
    tags = tagger.memory.tags[1:]
    assert dict(zip(tags, tagger.bias_shares, strict=True)) == {
        "B-city": 0.5,
        "I-city": 0.5,
        "B-person": 1.0,
        "I-person": 1.0,
    }


def test_it_is_off_unless_asked_for(method_of):
    assert method_of("esd").fit(ONE_AND_FOUR).bias_shares is None


def test_a_label_of_one_example_is_found_where_one_of_four_is_not(method_of):
    tagger = replace(method_of("esd", bias_by_shots=True).fit(ONE_AND_FOUR), o_bias=1.0)
    bounds = np.array([[0, 1], [1, 2]])
    scores = SpanScores(tagger.memory.labels, bounds, np.array([[0.0, -0.7, -9.0], [0.0, -9.0, -0.7]]))
    assert tagger.memory.labels == ("city", "person")
    assert [one.span for one in tagger.decode(scores)] == [Span(1, 2, "person")]


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3), st.integers(-5, 5))
def test_the_same_bias_for_each_class_is_one_bias_against_o(row, whole):
    o_bias = whole + 0.5  # so that nothing is as good as O
    alike = np.full(2, o_bias)
    spans = SpanScores(("a", "b"), np.array([[0, 1]]), np.array([row], dtype=float))
    tokens = TokenScores(("O", "a", "b"), np.array([row], dtype=float))
    for one, each in (
        (SpanDecoder(KeepAll())(spans, o_bias), SpanDecoder(KeepAll())(spans, alike)),
        (TagDecoder("io")(tokens, o_bias), TagDecoder("io")(tokens, alike)),
    ):
        assert [found.score for found in one] == pytest.approx([found.score for found in each])
        assert len(one) == len(each)
