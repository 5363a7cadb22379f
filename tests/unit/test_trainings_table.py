"""The table of models that were trained in different ways, with tiny models."""

from __future__ import annotations

import shutil

import pytest

from spanshot.errors import ConfigError
from spanshot.research.experiments import trainings
from spanshot.research.experiments.ledger import Ledger
from spanshot.research.experiments.user_like import episode_files
from spanshot.research.training.folder import RESULT
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings
from tiny import write_corpora, write_tiny_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_corpora(tmp_path_factory.mktemp("many"))
    for file in list((folder / "user_like").glob("*_1.jsonl")):
        shutil.copy(file, file.with_name(file.name.replace("_1", "_5")))
    return folder


@pytest.fixture(scope="module")
def runs(folder, tmp_path_factory):
    encoder = write_tiny_encoder(tmp_path_factory.mktemp("encoder"))
    root = tmp_path_factory.mktemp("runs")
    for method in ("linear", "esd"):
        table = {
            "method": {"name": method},
            "encoder": {"name": str(encoder)},
            "data": {"kind": "many", "folder": str(folder), "held_out": ["held"]},
            "train": {"steps": 1, "batch": 1, "dev_episodes": 1},
        }
        list(run_training(RunSettings.of(table), root / method))
    return root


def test_every_model_has_a_row_with_its_training_and_its_figures(folder, runs, tmp_path):
    ledger = Ledger(tmp_path / "trainings.json", trainings.KEYS)
    for method in ("linear", "esd"):
        trainings.measure(ledger, runs / method, episode_files(folder / "user_like"), tmp_path, lambda _: None)
    esd, linear = ledger
    assert (esd["method"], esd["corpora"], esd["steps"], esd["learned from"]) == ("esd", 2, 1, "examples only")
    assert (linear["method"], linear["corpora"], linear["learned from"]) == ("linear", 2, "names and examples")
    assert esd["names 1"] == ""
    assert linear["names 1"] != ""
    assert linear["f1 1"] == linear["f1 5"]  # the files of this test are the same
    lines = trainings.tables(ledger).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| linear", "| esd"]


def test_an_unfinished_run_is_refused(folder, runs, tmp_path):
    shutil.copytree(runs / "linear", tmp_path / "run")
    (tmp_path / "run" / RESULT).unlink()
    ledger = Ledger(tmp_path / "trainings.json", trainings.KEYS)
    with pytest.raises(ConfigError, match="not a finished training run"):
        trainings.measure(ledger, tmp_path / "run", episode_files(folder / "user_like"), tmp_path, lambda _: None)
