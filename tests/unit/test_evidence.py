from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spanshot.decode.scores import SpanScores
from spanshot.decode.spans import with_evidence
from spanshot.research.methods.esd import Esd, EsdSettings
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.types import Evidence, ScoredSpan, Sentence, Span, SupportSet
from tiny import write_tiny_encoder

CITIES = (
    Sentence(("in", "Rome"), (Span(1, 2, "city"),)),
    Sentence(("Oslo", "met", "Ada"), (Span(0, 1, "city"), Span(2, 3, "person"))),
)
ORIGIN = ((0, Span(1, 2, "city")), (1, Span(0, 1, "city")), (1, Span(2, 3, "person")))


def scores(evidence) -> SpanScores:
    return SpanScores(("city", "person"), np.array([[0, 1], [0, 2]]), np.zeros((2, 3)), evidence)


def test_weights_are_the_softmax_over_the_labels_own_examples_weightiest_first():
    found = [ScoredSpan(Span(0, 2, "city"), 0.9), ScoredSpan(Span(0, 1, "person"), 0.5)]
    near = np.array([[9.0, 9.0, 0.0], [0.0, np.log(3.0), 5.0]])
    city, person = with_evidence(found, scores(near), (slice(0, 2), slice(2, 3)), ORIGIN)
    assert [one.sentence for one in city.because] == [1, 0]
    assert [one.weight for one in city.because] == pytest.approx([0.75, 0.25])
    assert person.because == (Evidence(1, Span(2, 3, "person"), 1.0),)
    assert [replace(one, because=()) for one in (city, person)] == found


def test_where_a_method_cannot_tell_nothing_is_said():
    found = [ScoredSpan(Span(0, 1, "city"), 0.9)]
    assert with_evidence(found, scores(None), (slice(0, 2), slice(2, 3)), ORIGIN) == found


@pytest.mark.parametrize("insa", [True, False])
def test_a_span_like_an_example_is_found_because_of_it(tmp_path, insa):
    # After intra span attention all vectors are of one length, so that none is nearer to a span than its own double.
    settings = EsdSettings(size=8, longest=2, csa=False, insa=insa)
    method = Esd(load_pretrained(str(write_tiny_encoder(tmp_path))), settings)
    tagger = replace(method.fit(SupportSet.of(CITIES)), o_bias=100.0)
    (found,) = tagger([Sentence(("Oslo", "met", "Ada"))])
    assert found
    for one in found:
        assert sum(evidence.weight for evidence in one.because) == pytest.approx(1.0)
        assert {evidence.span.label for evidence in one.because} == {one.span.label}
        if one.span.label == "city":
            weights = {evidence.sentence: evidence.weight for evidence in one.because}
            assert (weights[0] == pytest.approx(0.5)) == (not insa)
            if one.span == Span(0, 1, "city") and insa:
                assert max(weights, key=weights.__getitem__) == 1
