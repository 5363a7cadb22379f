from __future__ import annotations

import copy
import random
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given
from hypothesis import strategies as st

from spanshot.research.experiments.evaluate import Calibration
from spanshot.research.methods import Esd
from spanshot.research.methods.esd import EsdSettings
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.nn.spans import bounds_up_to
from spanshot.research.training.loop import Stage, linear_schedule
from spanshot.research.training.settings import StageSettings, TrainSettings
from spanshot.research.training.warm_start import SpanClassifier, batches, labels_of
from strategies_sentences import settings as _untimed  # noqa: F401 (loads the profile)
from tiny import toy_episodes, write_tiny_encoder

EPISODES = toy_episodes(6, seed=1)
QUICK = {"encoder_rate": 1e-3, "head_rate": 2e-3, "batch": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def make(folder):
    def made(*, freeze_embeddings: bool = False, **changes: object) -> Esd:
        encoder = load_pretrained(str(folder), freeze_embeddings=freeze_embeddings)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return Esd(encoder, EsdSettings(size=8, longest=3, **changes))

    return made


def draw(rng: random.Random):
    return rng.choice(EPISODES)


def stage_of(module: torch.nn.Module, seed: int = 1, **settings: object) -> Stage:
    return Stage(module, draw, StageSettings(**{**QUICK, **settings}), seed, Accelerator(cpu=True))


def weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


# The schedule


@given(st.integers(1, 500), st.floats(0, 0.99))
def test_rates_rise_to_their_peak_and_fall_towards_nothing(steps, warmup):
    rates = [linear_schedule(done, steps, warmup) for done in range(steps)]
    assert all(0 < rate <= 1 + 1e-9 for rate in rates)
    top = rates.index(max(rates))
    assert all(a < b + 1e-9 for a, b in pairwise(rates[: top + 1]))
    assert all(a > b - 1e-9 for a, b in pairwise(rates[top:]))
    assert linear_schedule(steps, steps, warmup) == pytest.approx(0, abs=1e-9)


def test_rates_rise_and_fall_in_a_straight_line():
    rates = [linear_schedule(done, 100, 0.1) for done in range(100)]
    assert rates[:11] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0])
    assert np.diff(rates[10:]) == pytest.approx(-1 / 90)


def test_without_warm_up_the_first_rate_is_the_peak():
    assert linear_schedule(0, 4, 0.0) == 1.0
    assert [linear_schedule(done, 4, 0.0) for done in range(4)] == [1.0, 0.75, 0.5, 0.25]


def test_steps_follow_the_schedule_and_are_numbered_from_one(make):
    steps = list(stage_of(make(), steps=5, warmup=0.4).steps())
    assert [step.number for step in steps] == [1, 2, 3, 4, 5]
    assert [step.rate for step in steps] == pytest.approx([1e-3 * linear_schedule(n, 5, 0.4) for n in range(5)])
    assert all(np.isfinite(step.loss) for step in steps)


# Steps


def test_batches_added_up_are_one_larger_batch(make):
    large, small = make(), make()
    once = [step.loss for step in stage_of(large, steps=2, batch=4, accumulate=1).steps()]
    added = [step.loss for step in stage_of(small, steps=2, batch=2, accumulate=2).steps()]
    assert once == pytest.approx(added, abs=1e-6)
    for name, value in large.state_dict().items():
        torch.testing.assert_close(small.state_dict()[name], value, atol=1e-6, rtol=1e-5)


def test_the_gradient_of_a_step_is_the_mean_over_its_episodes(make):
    """Plain gradients of both episodes, added by hand, followed by the same optimiser."""
    trained, by_hand = make(), make()
    for inner in (*trained.modules(), *by_hand.modules()):
        if isinstance(inner, torch.nn.Dropout):
            inner.p = 0.0
    settings = StageSettings(steps=1, batch=2, clip=0.0, warmup=0.0, encoder_rate=1e-3, head_rate=1e-3)
    numbers = iter([0, 1])
    stage = Stage(trained, lambda rng: EPISODES[next(numbers)], settings, 1, Accelerator(cpu=True))
    (step,) = stage.steps()
    losses = [by_hand.episode_loss(episode) for episode in EPISODES[:2]]
    (sum(losses) / 2).backward()
    torch.optim.AdamW(by_hand.parameters(), lr=1e-3, weight_decay=settings.weight_decay).step()
    assert step.loss == pytest.approx(sum(loss.item() for loss in losses) / 2, abs=1e-5)
    for name, value in by_hand.named_parameters():
        if name.endswith("key.bias"):
            continue  # a softmax does not feel it: its gradient is rounding, which Adam blows up
        torch.testing.assert_close(dict(trained.named_parameters())[name], value, atol=2e-4, rtol=1e-3)


def test_training_lowers_the_loss(make):
    losses = [step.loss for step in stage_of(make(), steps=40).steps()]
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])


def test_clipped_gradients_are_no_longer_than_asked_for(make):
    method = make()
    before = weights(method)
    list(stage_of(method, steps=1, clip=1e-12, warmup=0.0, weight_decay=0.0, head_rate=1e-3).steps())
    # Adam divides by the gradient's size plus 1e-8, so that a gradient of 1e-12 hardly moves a weight
    moved = max((method.state_dict()[name] - before[name]).abs().max().item() for name in before)
    assert 0 < moved < 1e-6


def test_encoder_and_head_have_rates_of_their_own(make):
    for rates, still in (({"encoder_rate": 0.0}, "encoder."), ({"head_rate": 0.0}, "span_head.")):
        method = make()
        before = weights(method)
        list(stage_of(method, steps=2, **rates).steps())
        moved = changed(before, weights(method))
        assert moved
        assert not {name for name in moved if name.startswith(still)}


def test_frozen_embeddings_stay_as_they_are_and_all_else_moves(make):
    method = make(freeze_embeddings=True)
    before = weights(method)
    list(stage_of(method, steps=2).steps())
    frozen = {"encoder.transformer.embeddings.word_embeddings.weight"}
    parameters = {name for name, _ in method.named_parameters()}
    assert parameters - changed(before, weights(method)) == frozen


def test_a_step_leaves_the_random_generators_of_the_process_alone(make):
    stage = stage_of(make(), steps=2)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    for _ in stage.steps():
        assert torch.equal(torch.get_rng_state(), before[0])
        assert random.getstate() == before[1]
        assert np.array_equal(np.random.get_state()[1], before[2])


def test_the_seed_alone_decides_whatever_the_process_did_before(make):
    runs = []
    for seed, noise in ((1, 3), (1, 4), (2, 3)):
        method = make()
        with torch.random.fork_rng():
            torch.manual_seed(noise)
            runs.append([step.loss for step in stage_of(method, seed=seed, steps=3).steps()])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_gradients_are_gone_after_a_step(make):
    method = make()
    list(stage_of(method, steps=1).steps())
    assert all(weight.grad is None or not weight.grad.any() for weight in method.parameters())


@pytest.mark.parametrize("stop", [0, 1, 3, 5])
def test_a_stage_taken_up_again_goes_on_as_if_it_had_never_stopped(make, stop):
    whole = make()
    losses = [step.loss for step in stage_of(whole, steps=5).steps()]
    half = make()
    stage = stage_of(half, steps=5)
    kept = [step.loss for _, step in zip(range(stop), stage.steps(), strict=False)]
    state = {name: value.clone() for name, value in stage.state().items()}
    again = make()
    again.load_state_dict(half.state_dict())
    later = stage_of(again, steps=5)
    later.restore(stop, state)
    assert kept + [step.loss for step in later.steps()] == losses
    assert changed(weights(whole), weights(again)) == set()


# The warm start


def test_a_warm_start_trains_the_methods_own_encoder_and_span_head(make):
    method = make()
    sentences = [sentence for episode in EPISODES for sentence in episode.query]
    before = weights(method)
    classifier = SpanClassifier(method, labels_of(sentences))
    stage = Stage(classifier, batches(sentences, 4), StageSettings(steps=3, **QUICK), 1, Accelerator(cpu=True))
    list(stage.steps())
    moved = {name.split(".")[0] for name in changed(before, weights(method))}
    assert moved == {"encoder", "span_head"}


def test_a_warm_start_teaches_a_span_prior_what_is_marked_at_all(make):
    method = make(span_prior=True)
    sentences = [sentence for episode in EPISODES for sentence in episode.query]
    classifier = SpanClassifier(method, labels_of(sentences))
    list(Stage(classifier, batches(sentences, 8), StageSettings(steps=150, **QUICK), 1, Accelerator(cpu=True)).steps())
    method.eval()
    sure: dict[bool, list[float]] = {True: [], False: []}
    with torch.no_grad():
        for sentence in sentences:
            own = bounds_up_to(len(sentence), 3)
            vectors = method.span_head(method.encoder([sentence]), [own]).vectors[0]
            marked = {(span.start, span.end) for span in sentence.spans}
            for bounds, value in zip(own.tolist(), method.prior(vectors)[:, 0].tolist(), strict=True):
                sure[tuple(bounds) in marked].append(value)
    assert np.mean(sure[True]) > np.mean(sure[False]) + 1


def test_a_warm_start_learns_the_source_labels(make):
    sentences = [sentence for episode in EPISODES for sentence in episode.query]
    classifier = SpanClassifier(make(), labels_of(sentences))
    settings = StageSettings(steps=40, **QUICK)
    losses = [s.loss for s in Stage(classifier, batches(sentences, 8), settings, 1, Accelerator(cpu=True)).steps()]
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])


def test_a_batch_of_a_warm_start_has_no_sentence_twice_and_no_more_than_there_are():
    sentences = [sentence for episode in EPISODES for sentence in episode.query]
    drawn = batches(sentences, 5)(random.Random(0))
    assert len(drawn) == 5
    assert len({id(sentence) for sentence in drawn}) == 5
    assert len(batches(sentences[:3], 5)(random.Random(0))) == 3


def test_labels_are_listed_in_order_whatever_the_order_of_sentences():
    sentences = [sentence for episode in EPISODES for sentence in episode.query]
    assert labels_of(sentences) == labels_of(sentences[::-1]) == ["city", "person"]


def test_a_copy_of_a_trained_method_can_be_trained_too(make):
    method = make()
    list(stage_of(method, steps=1).steps())
    twin = copy.deepcopy(method)
    before = weights(method)
    list(stage_of(twin, steps=1).steps())
    assert changed(before, weights(method)) == set()
    assert changed(before, weights(twin))


def test_o_biases_are_searched_on_both_sides_and_the_smallest_of_equals_wins():
    tried = TrainSettings().o_biases
    assert min(tried) <= -2.0
    assert max(tried) >= 2.0
    assert tried == tuple(sorted(tried))

    def best(scores: dict[float, float]) -> float:
        reports = {bias: SimpleNamespace(f1=lambda _, score=score: score) for bias, score in scores.items()}
        return Calibration(reports, "micro_f1").o_bias

    assert best({-1.0: 0.6, 0.0: 0.5, 1.0: 0.4}) == -1.0
    assert best({-2.0: 0.6, -1.0: 0.6, 0.0: 0.5, 2.0: 0.6}) == -1.0
    assert best({-2.0: 0.5, 0.0: 0.5, 1.0: 0.5}) == 0.0
