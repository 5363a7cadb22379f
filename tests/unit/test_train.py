from __future__ import annotations

import copy
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from spanshot.errors import ConfigError
from spanshot.research.experiments.evaluate import Calibration
from spanshot.research.methods.esd import Esd, EsdSettings
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.training.devices import check_precision, default_accelerator
from spanshot.research.training.drawing import in_process
from spanshot.research.training.loop import Stage
from spanshot.research.training.settings import StageSettings, TrainSettings
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


def stage_of(module: torch.nn.Module, seed: int = 1, precision: str = "float32", **settings: object) -> Stage:
    stage_settings = StageSettings(**{**QUICK, **settings})
    return Stage(module, in_process(draw), stage_settings, seed, Accelerator(cpu=True), precision)


def weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


# The schedule


def rates_of(make, **settings: object) -> list[float]:
    steps = list(stage_of(make(), batch=1, **settings).steps())
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert all(np.isfinite(step.loss) for step in steps)
    return [step.rate for step in steps]


def test_rates_rise_to_their_peak_and_fall_to_nothing_in_a_straight_line(make):
    rates = rates_of(make, steps=10, warmup=0.4)
    assert rates == pytest.approx(
        [1e-3 * part for part in (0, 1 / 4, 2 / 4, 3 / 4, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6)]
    )


def test_without_warm_up_the_first_rate_is_the_peak(make):
    assert rates_of(make, steps=4, warmup=0.0) == pytest.approx([1e-3, 0.75e-3, 0.5e-3, 0.25e-3])


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
    stage = Stage(trained, in_process(lambda rng: EPISODES[next(numbers)]), settings, 1, Accelerator(cpu=True))
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


@pytest.mark.parametrize(
    ("stop", "precision"), [(0, "float32"), (1, "float32"), (3, "float32"), (5, "float32"), (3, "float16")]
)
def test_a_stage_taken_up_again_goes_on_as_if_it_had_never_stopped(make, stop, precision):
    whole = make()
    losses = [step.loss for step in stage_of(whole, steps=5, precision=precision).steps()]
    half = make()
    stage = stage_of(half, steps=5, precision=precision)
    kept = [step.loss for _, step in zip(range(stop), stage.steps(), strict=False)]
    state = {name: value.clone() for name, value in stage.state().items()}
    again = make()
    again.load_state_dict(half.state_dict())
    later = stage_of(again, steps=5, precision=precision)
    later.restore(stop, state)
    assert kept + [step.loss for step in later.steps()] == losses
    assert changed(weights(whole), weights(again)) == set()


def test_a_restored_optimizer_keeps_its_state_on_the_device_of_the_weights(make):
    """The meta device stands in for a GPU: the state is read into main memory, the weights lie elsewhere."""
    stage = stage_of(make(), steps=3)
    next(stage.steps())
    state = {name: value.clone() for name, value in stage.state().items()}
    assert {value.device.type for value in state.values()} == {"cpu"}
    method = make().to("meta")
    accelerator = Accelerator(cpu=True, device_placement=False)
    elsewhere = Stage(method, in_process(draw), StageSettings(**QUICK, steps=3), 1, accelerator)
    elsewhere.restore(1, state)
    for values in elsewhere._optimizer.state.values():
        assert {values["exp_avg"].device.type, values["exp_avg_sq"].device.type} == {"meta"}
    assert set(elsewhere.state()) == set(state)


# Precision


def test_mixed_precision_of_the_launcher_is_ignored_on_a_cpu(monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    AcceleratorState._reset_state(reset_partial_state=True)
    try:
        accelerator = default_accelerator()
        assert accelerator.mixed_precision == "no"
        check_precision("float32", accelerator.device)
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)


def test_a_precision_that_the_device_lacks_is_refused_with_those_it_has(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    with pytest.raises(ConfigError, match=r"float16 is not supported on this device \(cpu\); use float32 or bfloat16"):
        check_precision("float16", torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"bfloat16 is not .* \(cuda\); use float32 or float16"):
        check_precision("bfloat16", torch.device("cuda"))
    check_precision("float16", torch.device("cuda"))
    check_precision("bfloat16", torch.device("cpu"))


def test_a_launcher_and_settings_that_contradict_each_other_are_refused(monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")
    with pytest.raises(ConfigError, match=r"fp16, but train\.precision is float32; set train\.precision=float16"):
        check_precision("float32", torch.device("cuda"))
    check_precision("float16", torch.device("cuda"))


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_the_encoder_alone_computes_in_lower_precision_and_only_within_steps(make, precision):
    method = make(span_head="narrow", identity_start=False)  # starts with a high loss, so that a few steps lower it
    seen = []
    activation = method.encoder.transformer.encoder.layer[0].intermediate.intermediate_act_fn
    activation.register_forward_hook(lambda layer, inputs, output: seen.append((layer.training, output.dtype)))
    losses = [step.loss for step in stage_of(method, steps=20, precision=precision).steps()]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    assert {dtype for _, dtype in seen} == {getattr(torch, precision)}
    assert {weight.dtype for weight in method.parameters()} == {torch.float32}
    assert method.encoder(EPISODES[0].query).first.dtype == torch.float32
    assert seen[-1][1] == torch.float32
    method.encoder.compute_dtype = getattr(torch, precision)
    assert method.encoder(EPISODES[0].query).first.dtype == torch.float32  # what follows the encoder
    assert method.encoder.means(EPISODES[0].query).dtype == torch.float32
    assert method.encoder.without_padding(EPISODES[0].query)[0].first.dtype == torch.float32


def test_in_half_precision_a_step_that_overflows_is_skipped_and_the_next_ones_are_scaled_less(make):
    method = make()
    before = weights(method)
    stage = stage_of(method, steps=4, precision="float16", warmup=0.0)
    stage._scaler.load_state_dict(stage._scaler.state_dict() | {"scale": 2.0**120})
    steps = stage.steps()
    next(steps)
    assert changed(before, weights(method)) == set()
    assert stage._scaler.get_scale() == 2.0**119
    stage._scaler.load_state_dict(stage._scaler.state_dict() | {"scale": 2.0**10})
    next(steps)
    assert changed(before, weights(method))


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
