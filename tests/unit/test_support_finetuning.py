"""Held-out episodes of a support set, and fine-tuning on them."""

from __future__ import annotations

import copy
import random
from dataclasses import replace

import pytest
import torch

from spanshot.examples.parts import parts_of
from spanshot.formats.inline import parse_inline
from spanshot.research.checkpoint import new_method
from spanshot.research.learning.held_out import held_out_at_random
from spanshot.research.learning.support_finetuning import SupportFinetuning, finetuned
from spanshot.research.training.settings import RunSettings
from spanshot.types import SupportSet
from tiny import toy_episodes, write_tiny_encoder

SUPPORT = SupportSet.of(
    [parse_inline(line) for line in ("in [Oslo](city)", "to [Rome](city) with [Ada](person)", "nothing here")]
)


@pytest.fixture(scope="module")
def method(tmp_path_factory):
    settings = RunSettings.of(
        {
            "method": {"name": "esd", "size": 8, "longest": 3},
            "data": {"kind": "episodes", "train": "none", "dev": "none"},
            "encoder": {"name": str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))},
        }
    )
    torch.manual_seed(0)
    return new_method(settings).eval()


@pytest.fixture
def episode():
    return toy_episodes(1, labels=("city", "dish"), support=12, query=6, seed=1)[0]


# Held-out episodes


def test_sentences_are_held_out_in_so_many_parts_and_doubles_together():
    sentences = [parse_inline(f"w{number} [Oslo](city)") for number in (1, 2, 3, 1, 4)]
    parts = list(parts_of(sentences, 2))
    assert len(parts) == 2
    assert sorted(number for part in parts for number in part) == [0, 1, 2, 3, 4]
    assert all((0 in part) == (3 in part) for part in parts)
    assert list(parts_of(sentences)) == [[0, 3], [1], [2], [4]]


def test_a_share_is_held_out_at_random_and_asks_for_something_that_the_rest_teaches():
    support = toy_episodes(1, labels=("city", "dish"), support=9, query=1, seed=3)[0].support
    rng = random.Random(1)
    drawn = [held_out_at_random(support, 1 / 3, rng) for _ in range(20)]
    for episode in drawn:
        assert len(episode.query) == 3
        assert len(episode.support.sentences) == 6
        assert any(sentence.spans for sentence in episode.query)
        assert {span.label for s in episode.query for span in s.spans} <= set(episode.support.labels)
    assert len({episode.query for episode in drawn}) > 5


def test_nothing_is_drawn_where_no_split_teaches_what_it_asks_for():
    support = SupportSet.of([parse_inline("in [Oslo](city)"), parse_inline("for [Ada](person)")])
    assert held_out_at_random(support, 0.5, random.Random(1)) is None


def test_a_lone_example_gives_no_episode():
    support = SupportSet.of([parse_inline("in [Oslo](city)")])
    assert held_out_at_random(support, 0.5, random.Random(1)) is None


# Fine-tuning


def test_fine_tuning_lowers_the_loss_on_held_out_sentences_and_leaves_the_method_alone(method, episode):
    before = {name: value.clone() for name, value in method.state_dict().items()}
    state = torch.get_rng_state()
    seen = []
    how = SupportFinetuning(steps=30, encoder_rate=1e-3, head_rate=1e-3)
    learned = finetuned(method, episode.support, how, lambda done, of: seen.append((done, of)))

    rng = random.Random(5)
    parts = [held_out_at_random(episode.support, 1 / 6, rng) for _ in range(8)]

    def loss(own) -> float:
        with torch.no_grad():
            return sum(own.episode_loss(part).item() for part in parts)

    assert loss(learned) < 0.8 * loss(method)
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert seen[-1] == (30, 30)
    assert not learned.training
    assert not any(weight.grad is not None for weight in learned.parameters())


def test_fine_tuning_is_the_same_for_the_same_seed(method, episode):
    how = SupportFinetuning(steps=3, encoder_rate=1e-3)
    one, two, other = (finetuned(method, episode.support, replace(how, seed=seed)) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_an_encoder_without_a_rate_is_left_as_it_is(method, episode):
    learned = finetuned(method, episode.support, SupportFinetuning(steps=2, encoder_rate=0.0, head_rate=1e-2))
    own, old = dict(learned.named_parameters()), dict(method.named_parameters())
    moved = {name.split(".")[0] for name in own if not torch.equal(own[name], old[name])}
    assert "encoder" not in moved
    assert moved
    assert all(own[name].requires_grad == old[name].requires_grad for name in own)


def test_where_nothing_can_be_held_out_there_is_no_fine_tuning(method):
    lone = SupportSet.of([parse_inline("in [Oslo](city)")])
    assert finetuned(method, lone, SupportFinetuning(least_shots=1)) is method


def test_fine_tuning_takes_so_many_examples_of_a_label_on_average(method):
    support = SupportSet.of([*SUPPORT.sentences, parse_inline("[Lima](city) and [Bonn](city)")])  # 4 cities, 1 person
    assert finetuned(method, support, SupportFinetuning(steps=1, least_shots=2.5)) is not method
    assert finetuned(method, support, SupportFinetuning(steps=1, least_shots=3)) is method


def test_fine_tuning_does_not_depend_on_the_order_of_examples(method, episode):
    support = episode.support
    turned = SupportSet(tuple(reversed(support.labels)), tuple(reversed(support.sentences)))
    one, two = (finetuned(method, own, SupportFinetuning(steps=3)) for own in (support, turned))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_fine_tuning_raises_the_o_bias_by_what_the_settings_say(method, episode):
    bold = copy.deepcopy(method)
    bold.settings = replace(method.settings, finetuned_bias=1.5)
    learned = finetuned(bold, episode.support, SupportFinetuning(steps=1))
    assert learned.o_bias.item() == pytest.approx(method.o_bias.item() + 1.5)
    assert bold.o_bias.item() == method.o_bias.item()
