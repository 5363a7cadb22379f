"""A run that is killed, at whatever moment, and started again ends as if nothing had happened."""

from __future__ import annotations

import json
import signal
import time
from itertools import count
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

import killable
from fork_server import PROCESSES
from spanshot.errors import CheckpointError, ConfigError
from spanshot.research.checkpoint import load, read_record, weights_of
from spanshot.research.corpora.episode_files import write_episodes
from spanshot.research.methods.esd import Esd
from spanshot.research.training.events import MetricsFile
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings
from tiny import toy_episodes, write_corpora, write_tiny_encoder

PRETRAIN_STEPS, STEPS = 4, 7
LOOKS = 3  # after 3, 6 and 7 steps


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> dict[str, dict[str, object]]:
    folder = tmp_path_factory.mktemp("data")
    for seed, split in enumerate(("train", "dev")):
        write_episodes(folder / f"{split}.jsonl", toy_episodes(5, seed=seed))
    return {
        "method": {"name": "esd", "size": 8, "longest": 3},
        "data": {"kind": "episodes", "train": str(folder / "train.jsonl"), "dev": str(folder / "dev.jsonl")},
        "encoder": {"name": str(write_tiny_encoder(folder / "encoder"))},
        "train": {
            "steps": STEPS,
            "batch": 2,
            "encoder_rate": 2e-3,
            "head_rate": 5e-3,
            "evaluate_every": 3,
            "save_every": 2,
            "dev_episodes": 2,
        },
    }


@pytest.fixture(scope="module")
def undisturbed(table, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    assert start(table, folder).exitcode == 0
    return folder


def start(table, folder: Path, *moment: object, wait: bool = True):
    process = PROCESSES.Process(target=killable.train, args=(table, str(folder), *moment))
    process.start()
    if wait:
        process.join()
    return process


def metrics(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def result(folder: Path) -> dict[str, object]:
    ended = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    ended.pop("seconds")
    return ended


def names(folder: Path) -> set[str]:
    """What lies in a run folder; a kill may leave a hidden temporary file."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def assert_ended_alike(folder: Path, undisturbed: Path) -> None:
    assert result(folder) == result(undisturbed)
    assert metrics(folder) == metrics(undisturbed)
    found, wanted = (weights_of(load(run).method) for run in (folder, undisturbed))
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if not torch.equal(found[name], wanted[name])] == []
    assert names(folder) == names(undisturbed)


def was_killed(process) -> bool:
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode != 0


def assert_best_is_whole(folder: Path, seen: bool) -> bool:
    """Once there is a best checkpoint there always is one, and it can be loaded."""
    if not seen and not list(folder.glob("best*")):
        return False
    if not seen and not (folder / "best").exists():
        with pytest.raises(CheckpointError, match="no such checkpoint folder"):
            load(folder / "best")
        return False
    load(folder / "best")
    return True


def test_an_undisturbed_run_leaves_what_it_says(undisturbed):
    lines = metrics(undisturbed)
    steps = [(line["phase"], line["step"]) for line in lines if "loss" in line]
    assert steps == [("train", n + 1) for n in range(STEPS)]
    assert [line["step"] for line in lines if "dev_f1" in line] == [3, 6, 7]
    assert {path.name for path in undisturbed.iterdir()} == {"best", "config.toml", "metrics.jsonl", "result.json"}
    assert read_record(undisturbed)["result"]["step"] == result(undisturbed)["best_step"]


def test_killed_from_outside_again_and_again_a_run_ends_as_if_undisturbed(table, undisturbed, tmp_path):
    folder = tmp_path / "run"
    kills = 0
    seen = False
    for lines in (1, 2, 3, 4, 5, 7, 8, 9):  # around evaluations and saves
        process = start(table, folder, wait=False)
        while process.is_alive() and lines > sum(1 for _ in _lines(folder)):
            time.sleep(0.001)
        process.kill()
        process.join()
        kills += was_killed(process)
        seen = assert_best_is_whole(folder, seen)
    if not (folder / "result.json").exists():
        assert start(table, folder).exitcode == 0
    assert kills >= 4
    assert_ended_alike(folder, undisturbed)


def _lines(folder: Path) -> list[str]:
    path = folder / "metrics.jsonl"
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


@pytest.mark.parametrize("moment", ["event", "before a rename", "after a rename", "within a write"])
def test_killed_at_the_worst_moments_a_run_ends_as_if_undisturbed(table, undisturbed, tmp_path, moment):
    """The first start is killed when the moment comes for the first time, the second at the second time..."""
    folder = tmp_path / "run"
    seen = False
    for number in count(1):
        assert number < 40
        process = start(table, folder, moment, number)
        seen = assert_best_is_whole(folder, seen)
        if not was_killed(process) or (folder / "result.json").exists():
            break
    assert number > 3
    (folder / "resume.safetensors").unlink(missing_ok=True)  # killed between writing the result and this
    assert_ended_alike(folder, undisturbed)


def test_killed_on_many_corpora_with_averaged_weights_a_run_ends_as_if_undisturbed(table, tmp_path):
    folder = write_corpora(tmp_path / "data")
    many = table | {
        "method": {"name": "linear", "size": 16, "hidden": 16, "longest": 4},
        "data": {"kind": "many", "folder": str(folder), "held_out": ["held"], "pool_pieces": 120},
        "train": table["train"] | {"steps": 4, "evaluate_every": 4, "average": 0.9, "decay": 0.0},
    }
    assert start(many, tmp_path / "undisturbed").exitcode == 0
    assert was_killed(start(many, tmp_path / "killed", "event", 3))
    assert start(many, tmp_path / "killed").exitcode == 0
    assert_ended_alike(tmp_path / "killed", tmp_path / "undisturbed")


def test_the_source_corpus_is_studied_once_and_whole(table, tmp_path, monkeypatch):
    studied = []
    monkeypatch.setattr(Esd, "compute_statistics", lambda method, sentences: studied.append(list(sentences)))
    settings = RunSettings.of(table)
    list(run_training(settings, tmp_path / "run", Accelerator(cpu=True)))
    assert studied == [settings.data.sentences()]


@pytest.mark.parametrize("method", ["transfer", "convex", "structshot"])
def test_a_method_that_studies_or_pretrains_is_taken_up_again_in_either_phase(table, tmp_path, method):
    """The statistics of the corpus are there again, also in a run that is taken up after its pretraining."""
    own = {**table, "method": {"name": method}, "train": {**table["train"], "evaluate_every": STEPS, "save_every": 1}}
    if method != "structshot":
        own["method"] = {"name": method, "finetune_steps": 2}
    if method == "convex":
        own["pretrain"] = {"steps": PRETRAIN_STEPS, "batch": 4}
    whole = tmp_path / "whole"
    list(run_training(RunSettings.of(own), whole, Accelerator(cpu=True)))
    for events in (2, PRETRAIN_STEPS + 2):
        folder = tmp_path / f"killed-{events}"
        assert was_killed(start(own, folder, "event", events))
        list(run_training(RunSettings.of(own), folder, Accelerator(cpu=True)))
        assert_ended_alike(folder, whole)


def test_a_run_keeps_its_last_weights_if_told_to(table, tmp_path):
    own = {**table, "train": {**table["train"], "keep": "last"}}
    folder = tmp_path / "run"
    list(run_training(RunSettings.of(own), folder, Accelerator(cpu=True)))
    assert read_record(folder)["result"]["step"] == STEPS
    assert json.loads((folder / "result.json").read_text(encoding="utf-8"))["best_step"] == STEPS


def test_a_run_that_has_ended_is_not_started_again(table, undisturbed):
    with pytest.raises(ConfigError, match="contains a finished run"):
        run_training(RunSettings.of(table), undisturbed)


def test_a_run_is_not_gone_on_with_under_other_settings(table, tmp_path):
    folder = tmp_path / "run"
    assert was_killed(start(table, folder, "event", 3))
    other = {**table, "train": {**table["train"], "steps": STEPS + 1}}
    with pytest.raises(ConfigError, match="other settings"):
        run_training(RunSettings.of(other), folder)


def test_a_line_cut_short_by_a_kill_is_dropped_with_all_after_it(tmp_path):
    whole = '{"phase": "train", "step": 1}\n'
    for rest in ('{"phase": "tra', '{"phase": "train", "step": 2}'):
        (tmp_path / "metrics.jsonl").write_text(whole + rest, encoding="utf-8")
        MetricsFile(tmp_path).trim(["train"], "train", 2)
        assert (tmp_path / "metrics.jsonl").read_text(encoding="utf-8") == whole
