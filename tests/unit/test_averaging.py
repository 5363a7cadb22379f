from __future__ import annotations

import pytest
import torch

from spanshot.errors import ConfigError
from spanshot.research.methods.esd import Esd, EsdSettings
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.training.averaging import mean_of
from tiny import write_tiny_encoder


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    folder = write_tiny_encoder(tmp_path_factory.mktemp("encoder"))

    def made(seed: int, size: int = 8) -> Esd:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return Esd(load_pretrained(str(folder)), EsdSettings(size=size, longest=3))

    return made


def test_every_weight_and_the_o_bias_are_the_mean_of_all(make):
    first, second, third = (make(seed) for seed in (1, 2, 3))
    third.o_bias.fill_(1.5)
    mean = mean_of([first, second, third]).state_dict()
    for name, weight in mean.items():
        own = [method.state_dict()[name] for method in (first, second, third)]
        torch.testing.assert_close(weight, sum(own) / 3 if weight.is_floating_point() else own[-1])
    assert mean["o_bias"].item() == pytest.approx(0.5)


def test_the_runs_themselves_stay_as_they_are(make):
    methods = [make(1), make(2)]
    before = [{name: weight.clone() for name, weight in method.state_dict().items()} for method in methods]
    mean_of(methods)
    for method, weights in zip(methods, before, strict=True):
        assert all(torch.equal(weight, weights[name]) for name, weight in method.state_dict().items())


def test_models_of_other_sizes_have_no_mean(make):
    with pytest.raises(ConfigError, match="same method, encoder and sizes"):
        mean_of([make(1), make(1, size=9)])
