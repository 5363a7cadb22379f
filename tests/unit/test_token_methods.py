"""What the methods that compare words compute, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from spanshot.decode.evidence import with_nearest_words
from spanshot.decode.scores import TokenScores
from spanshot.research.learning.tokens import TokenSettings, origin_of_words, words_by_tag
from spanshot.research.methods.matching import Matching
from spanshot.research.methods.nnshot import NNShot
from spanshot.research.methods.proto import Proto
from spanshot.research.methods.structshot import StructShot, StructShotSettings
from spanshot.research.nn.groups import grouped, squared_distances
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.types import Evidence, ScoredSpan, Sentence, Span, SupportSet
from tiny import write_tiny_encoder

SUPPORT = SupportSet.of(
    [
        Sentence(("in", "New", "York"), (Span(1, 3, "city"),)),
        Sentence(("Ada", "ran"), (Span(0, 1, "person"),)),
    ]
)
TWO = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return load_pretrained(str(write_tiny_encoder(tmp_path_factory.mktemp("encoder"))))


def test_distances_are_those_of_the_direct_sum():
    torch.manual_seed(0)
    one, two = torch.randn(5, 7), torch.randn(3, 7)
    direct = (one[:, None] - two[None]).square().sum(-1)
    torch.testing.assert_close(squared_distances(one, two), direct)


def test_words_are_grouped_by_their_tags():
    assert words_by_tag(SUPPORT, ("O", "city", "person"), "io") == [[0, 4], [1, 2], [3]]


def test_a_tag_that_no_word_has_is_given_the_words_of_its_label():
    tags = ("O", "B-city", "I-city", "B-person", "I-person")
    assert words_by_tag(SUPPORT, tags, "bio") == [[0, 4], [1], [2], [3], [3]]


def test_a_label_marked_only_within_another_has_words_all_the_same():
    nested = SupportSet.of([Sentence(("a", "b"), (Span(0, 2, "outer"), Span(1, 2, "inner")))])
    assert words_by_tag(nested, ("O", "inner", "outer"), "io") == [[], [1], [0, 1]]


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (Proto, [-((2.0 - 1) ** 2), -(3.0**2 + 1)]),  # the mean of the first class is (2, 0)
        (NNShot, [-1.0, -(3.0**2 + 1)]),  # its nearest member is (0, 0)
        (Matching, [torch.logsumexp(torch.tensor([0.0, 4.0]), 0).item(), 0.0]),
    ],
)
def test_nearness_is_that_of_the_formula(encoder, kind, wanted):
    method = kind(encoder, TokenSettings(temperature=1.0))
    found = method.nearness(torch.tensor([[1.0, 0.0]]), grouped(TWO, [[0, 1], [2]]))
    assert [own.item() for own in found.columns] == pytest.approx(wanted)


def test_nnshot_names_the_support_spans_that_hold_the_nearest_words(encoder):
    method = NNShot(encoder, TokenSettings())
    first, second = ("in", "New", "York"), ("Ada", "ran")
    tagger = replace(method.fit(SUPPORT), o_bias=100.0)
    found = tagger([Sentence(first), Sentence(second)])
    for sentence, (own, word) in enumerate(zip(found, (1, 0), strict=True)):
        (one,) = [one for one in own if one.span.start <= word < one.span.end]
        best = one.because[0]
        assert (best.sentence, best.span) == (sentence, SUPPORT.sentences[sentence].spans[0])
        assert best.weight == pytest.approx(1.0)  # all its words are nearest to words of the same span


def test_the_weight_of_a_support_span_is_its_share_of_the_nearest_words():
    york, rome = (0, Span(1, 3, "city")), (1, Span(0, 1, "city"))
    scores = TokenScores(
        ("O", "B-city", "I-city"),
        np.array([[0.0, 1.0, 5.0], [0.0, 5.0, 1.0], [0.0, 1.0, 2.0]]),
        np.array([[0, 1, 2], [0, 3, 2], [0, 1, 2]]),
    )
    (one,) = with_nearest_words(
        [ScoredSpan(Span(0, 3, "city"), 0.5)], scores, {"": [0], "city": [1, 2]}, [None, york, york, rome]
    )
    assert one.because == (Evidence(*york, 2 / 3), Evidence(*rome, 1 / 3))


def test_words_remember_the_span_they_are_from():
    tags = ("O", "B-city", "I-city", "B-person", "I-person")
    members = words_by_tag(SUPPORT, tags, "bio")
    city, person = (0, Span(1, 3, "city")), (1, Span(0, 1, "person"))
    assert origin_of_words(SUPPORT, tags, members, "bio") == (None, None, city, city, person, person)
    nested = SupportSet.of([Sentence(("a", "b"), (Span(0, 2, "outer"), Span(1, 2, "inner")))])
    tags = ("O", "inner", "outer")
    own = [(0, Span(1, 2, "inner")), *[(0, Span(0, 2, "outer"))] * 2]
    assert origin_of_words(nested, tags, words_by_tag(nested, tags, "io"), "io") == tuple(own)


def test_structshot_decodes_by_what_it_has_counted(encoder):
    method = StructShot(encoder, StructShotSettings(tau=1.0))
    before = method.decoder(SUPPORT).transitions
    never_two = [Sentence(("a", "b", "c"), (Span(1, 2, "x"),))] * 50
    method.compute_statistics(never_two)
    after = method.decoder(SUPPORT).transitions
    assert after.step[1, 1] < before.step[1, 1] - 1  # on within a span: never seen
    assert after.step[1, 0] > before.step[1, 0]
    assert after.start[0] > before.start[0]
