"""Training that starts from the weights of an earlier run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from spanshot.errors import CheckpointError, ConfigError
from spanshot.research.checkpoint import embedded_folder, load, new_method
from spanshot.research.corpora.episode_files import write_episodes
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings
from tiny import toy_episodes, write_tiny_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("start")


@pytest.fixture(scope="module")
def settings_of(folder):
    write_episodes(folder / "episodes.jsonl", toy_episodes(3, seed=0))
    encoder = write_tiny_encoder(folder / "encoder")

    def make(*, method: dict[str, object] | None = None, train: dict[str, object] | None = None, **encoder_settings):
        episodes = str(folder / "episodes.jsonl")
        return RunSettings.of(
            {
                "method": {"name": "esd", "size": 8, "longest": 3, **(method or {})},
                "data": {"kind": "episodes", "train": episodes, "dev": episodes},
                "encoder": {"name": str(encoder), **encoder_settings},
                "train": {"steps": 2, "batch": 1, "encoder_rate": 2e-3, "head_rate": 5e-3, **(train or {})},
            }
        )

    return make


@pytest.fixture(scope="module")
def earlier(folder, settings_of) -> Path:
    run = folder / "earlier"
    list(run_training(settings_of(), run))
    return run


def test_a_run_starts_with_the_weights_of_the_earlier_one_and_goes_on_from_there(earlier, settings_of, tmp_path):
    before = load(earlier).method.state_dict()
    settings = settings_of(train={"start": str(earlier)})
    started = new_method(settings).state_dict()
    assert started.keys() == before.keys()
    assert all(torch.equal(started[name], before[name]) for name in before)
    list(run_training(settings, tmp_path / "later"))
    after = load(tmp_path / "later").method.state_dict()
    assert any(not torch.equal(after[name], before[name]) for name in before)


def test_the_new_settings_hold_not_those_of_the_earlier_run(earlier, settings_of):
    settings = settings_of(method={"o_spans": 7}, train={"start": str(earlier)}, freeze_embeddings=True)
    method = new_method(settings)
    assert method.settings.o_spans == 7
    assert not method.encoder.transformer.get_input_embeddings().weight.requires_grad
    free = new_method(settings_of(train={"start": str(earlier)}))
    assert free.encoder.transformer.get_input_embeddings().weight.requires_grad


@pytest.mark.parametrize(
    ("method", "encoder", "message"),
    [
        ({"name": "retriever"}, {}, "method 'esd', this run 'retriever'"),
        ({"size": 9}, {}, "do not fit"),
        ({"span_head": "wide"}, {}, "do not fit"),
        ({}, {"name": "minilm"}, "this run 'minilm'"),
    ],
)
def test_weights_of_something_else_are_refused(earlier, settings_of, method, encoder, message):
    with pytest.raises(ConfigError, match=r"train\.start") as problem:
        new_method(settings_of(method=method, train={"start": str(earlier)}, **encoder))
    assert message in str(problem.value)


def test_a_start_that_is_not_there_is_named(settings_of, tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        new_method(settings_of(train={"start": str(tmp_path / "nowhere")}))


def test_the_model_that_comes_with_the_package_can_be_trained_on(settings_of):
    own = load(embedded_folder())
    settings = settings_of(
        method={"name": "linear", "size": 256, "longest": 12}, train={"start": "embedded"}, name="minilm"
    )
    started = new_method(settings).state_dict()
    assert all(torch.equal(started[name], value) for name, value in own.method.state_dict().items())
