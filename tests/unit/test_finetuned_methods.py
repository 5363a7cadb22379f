"""What the fine-tuning methods promise beyond the contract: steps, stopping rule, seeds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spanshot.research.learning.finetuned_methods import FinetunedSettings, Learner, _take_steps
from spanshot.research.learning.support_finetuning import in_standard_order
from spanshot.types import ScoredSpan, Sentence, Span, SupportSet

SUPPORT = SupportSet.of([Sentence((word,), (Span(0, 1, "x"),)) for word in "abcde"])


class Falling(Learner):
    """A learner whose loss falls with every step, and that counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(1, 1)
        self.head = nn.Linear(1, 1)
        self.support = SUPPORT
        self.asked = 0
        self.seen: list[list[int]] = []

    def forward(self, numbers: Sequence[int]) -> Tensor:
        self.asked += 1
        self.seen.append(list(numbers))
        return self.head.weight.square().sum() + self.encoder.weight.square().sum() + 1.0 / self.asked

    def tag(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        return [[] for _ in sentences]


def test_so_many_steps_are_taken_as_are_set():
    learner = Falling()
    _take_steps(learner, FinetunedSettings(finetune_steps=7, finetune_until=0.0))
    assert learner.asked == 7


def test_a_step_is_on_some_sentences_or_on_all():
    learner = Falling()
    _take_steps(learner, FinetunedSettings(finetune_steps=20, finetune_batch=2, finetune_until=0.0))
    assert all(len(set(own)) == 2 for own in learner.seen)
    assert {number for own in learner.seen for number in own} == set(range(5))
    for batch in (0, 5, 9):
        learner = Falling()
        _take_steps(learner, FinetunedSettings(finetune_steps=1, finetune_batch=batch, finetune_until=0.0))
        assert learner.seen == [[0, 1, 2, 3, 4]]


def test_steps_end_once_the_loss_is_low_enough():
    learner = Falling()
    nn.init.zeros_(learner.head.weight)
    nn.init.zeros_(learner.encoder.weight)
    _take_steps(learner, FinetunedSettings(finetune_steps=100, finetune_until=0.3))
    assert learner.asked == 4


def test_the_encoder_is_left_alone_where_it_has_no_rate():
    learner = Falling()
    before, head = learner.encoder.weight.clone(), learner.head.weight.clone()
    _take_steps(learner, FinetunedSettings(finetune_steps=3, finetune_until=0.0))
    assert torch.equal(learner.encoder.weight, before)
    assert not torch.equal(learner.head.weight, head)


def test_the_standard_order_depends_on_neither_the_given_order_nor_names():
    one = Sentence(("b", "c"), (Span(0, 1, "x"),))
    two = Sentence(("a",), (Span(0, 1, "y"),))
    found = in_standard_order(SupportSet(("x", "y"), (one, two)))
    assert found == SupportSet(("y", "x"), (two, one))
    assert in_standard_order(SupportSet(("y", "x"), (two, one))) == found
