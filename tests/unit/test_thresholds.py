from __future__ import annotations

import doctest
import random

import pytest

from spanshot.evaluation import thresholds
from spanshot.evaluation.report import Report
from spanshot.evaluation.thresholds import suggest_thresholds
from spanshot.types import Span


def test_the_examples_in_the_docstrings_hold():
    result = doctest.testmod(thresholds)
    assert result.attempted > 0
    assert result.failed == 0


def test_no_threshold_is_suggested_where_it_would_not_help():
    right, wrong = Span(0, 1, "city"), Span(2, 3, "city")
    assert suggest_thresholds([([right], [(right, 0.4)])]) == {}
    assert suggest_thresholds([([right], [(right, 0.4), (wrong, 0.9)])]) == {}
    assert suggest_thresholds([([], [(wrong, 0.9)])]) == {}


@pytest.mark.parametrize("seed", range(20))
def test_the_suggestion_is_the_best_of_all_thresholds_and_its_f1_is_the_reported_one(seed):
    rng = random.Random(seed)
    sentences = []
    for _ in range(8):
        gold = {Span(at, at + 1, "x") for at in range(6) if rng.random() < 0.5}
        predicted = {Span(at, at + 1, "x"): round(rng.random(), 2) for at in range(6) if rng.random() < 0.8}
        sentences.append((gold, list(predicted.items())))

    def f1(threshold: float) -> float:
        pairs = [(gold, [s for s, score in predicted if score >= threshold]) for gold, predicted in sentences]
        return Report.of_sentences(pairs).labels["x"].f1

    best = max(f1(step / 200) for step in range(201))
    found = suggest_thresholds(sentences)
    if best - f1(0.0) < thresholds.WORTHWHILE:
        assert found == {}
    else:
        assert found["x"].f1_before == pytest.approx(f1(0.0))
        assert found["x"].f1_after == pytest.approx(f1(found["x"].threshold)) == pytest.approx(best)
