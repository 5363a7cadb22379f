from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spanshot.research.nn.loss import SpanLogits, span_loss
from spanshot.research.nn.spans import bounds_up_to
from spanshot.types import Sentence, Span

LABELS = ("city", "day")


def scored(rows: list[list[float]], words: int, longest: int = 8, labels: tuple[str, ...] = LABELS) -> SpanLogits:
    return SpanLogits(labels, bounds_up_to(words, longest), torch.tensor(rows, requires_grad=True))


def softmax_loss(row: list[float], target: int) -> float:
    return math.log(sum(math.exp(value) for value in row)) - row[target]


def test_the_loss_is_the_mean_cross_entropy_of_spans_and_then_of_sentences():
    long = [[1.0, 0.5, -1.0], [0.0, 2.0, 0.0], [0.3, 0.2, 0.1]]  # (0, 1), (0, 2), (1, 2)
    short = [[0.0, 0.0, 3.0]]  # (0, 1)
    gold = [Sentence(("a", "b"), (Span(0, 2, "city"),)), Sentence(("c",), (Span(0, 1, "day"),))]
    of_long = (softmax_loss(long[0], 0) + softmax_loss(long[1], 1) + softmax_loss(long[2], 0)) / 3
    expected = (of_long + softmax_loss(short[0], 2)) / 2
    assert span_loss([scored(long, 2), scored(short, 1)], gold).item() == pytest.approx(expected, rel=1e-6)


def test_labels_are_found_by_name_and_not_by_position():
    rows = [[0.0, 1.0, 5.0]]
    gold = [Sentence(("a",), (Span(0, 1, "day"),))]
    turned = scored([[0.0, 5.0, 1.0]], 1, labels=("day", "city"))
    assert span_loss([scored(rows, 1)], gold).item() == pytest.approx(span_loss([turned], gold).item())


def test_a_gold_span_that_is_no_candidate_has_no_part_in_it():
    rows = [[0.5, 1.0, 0.0], [1.0, 0.0, 0.0]]  # (0, 1), (1, 2)
    gold = Sentence(("a", "b"), (Span(0, 2, "city"),))
    plain = gold.without_spans()
    assert span_loss([scored(rows, 2, 1)], [gold]).item() == span_loss([scored(rows, 2, 1)], [plain]).item()


def test_where_o_has_no_score_o_spans_have_no_part_and_gradients_stay_finite():
    rows = [[-math.inf, 1.0, 2.0], [-math.inf, 0.0, 1.0], [-math.inf, 0.0, 0.0]]
    scores = scored(rows, 2)
    loss = span_loss([scores], [Sentence(("a", "b"), (Span(0, 1, "city"),))])
    assert loss.item() == pytest.approx(softmax_loss([1.0, 2.0], 0) / 3, rel=1e-6)
    loss.backward()
    assert torch.isfinite(scores.logits.grad).all()
    assert scores.logits.grad[0, 1:].abs().min() > 0
    assert (scores.logits.grad[1:] == 0).all()


def test_right_scores_cost_less_than_wrong_ones():
    gold = [Sentence(("a",), (Span(0, 1, "city"),))]
    right, wrong = scored([[0.0, 9.0, 0.0]], 1), scored([[0.0, 0.0, 9.0]], 1)
    assert span_loss([right], gold).item() < 0.01 < 8 < span_loss([wrong], gold).item()


def test_following_the_gradient_raises_the_gold_class_and_lowers_the_others():
    scores = scored([[0.0, 0.0, 0.0]], 1)
    span_loss([scores], [Sentence(("a",), (Span(0, 1, "day"),))]).backward()
    assert np.sign(scores.logits.grad.numpy()).tolist() == [[1, 1, -1]]
