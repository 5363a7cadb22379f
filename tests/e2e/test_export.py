"""`spanshot export`: a user's own model runs on the base install, where torch cannot be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spanshot
from spanshot.engine.spans import candidates
from spanshot.errors import CheckpointError
from spanshot.research.cli.export import default_output
from spanshot.types import Sentence

WITHOUT_TORCH = """
import sys
for name in ("torch", "transformers", "accelerate", "onnx"):
    sys.modules[name] = None  # importing it fails
from spanshot.cli.main import main
main(sys.argv[1:])
"""
TEXT = "we saw Mary Ann and Lima ."


def without_torch(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process in which torch cannot be imported."""
    source = str(Path(__file__).parents[2] / "src")
    command = [sys.executable, "-c", WITHOUT_TORCH, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment, check=False)


@pytest.fixture(scope="module")
def own(lab) -> Path:
    """A run of the linear method."""
    from spanshot.research.training.run import run_training
    from spanshot.research.training.settings import RunSettings

    episodes = {split: str(lab / f"{split}.jsonl") for split in ("train", "dev")}
    table = {
        "method": {"name": "linear", "size": 16, "hidden": 16, "longest": 4},
        "data": {"kind": "episodes", **episodes},
        "encoder": {"name": str(lab / "encoder")},
        "train": {"steps": 30, "batch": 1, "encoder_rate": 1e-3, "head_rate": 5e-3, "keep": "last"},
    }
    list(run_training(RunSettings.of(table), lab / "own"))
    return lab / "own"


@pytest.fixture(scope="module")
def exported(own) -> Path:
    from spanshot.cli.main import run

    assert run(["export", str(own)]) == 0
    return own.with_name("own-exported")


def test_the_exported_model_tags_without_torch_and_has_the_vectors_of_the_trained_one(own, exported, examples):
    process = without_torch("tag", "--model", exported, "-e", examples, "--threshold", "0", "--json", TEXT)
    assert process.returncode == 0, process.stderr
    found = {(e["start"], e["end"], e["label"]) for e in json.loads(process.stdout)["entities"]}
    model, trained_model = spanshot.load_model(exported), spanshot.load_model(own)
    assert found == {(e.start, e.end, e.label) for e in model.learn(examples, threshold=0.0)(TEXT)}
    assert (7, 15, "person") in found  # Mary Ann is in the examples
    sentence = Sentence(tuple(TEXT.split()))
    bounds = candidates(len(sentence.words), (1, 2))
    ((_, spans),) = model.method.encoder.encode([sentence.words], [bounds])
    (vectors,) = trained_model.method.span_vectors([sentence], [bounds])
    np.testing.assert_allclose(spans.vectors, vectors, atol=2e-3)  # in half precision


def test_the_exported_model_is_loaded_in_python_with_8_bits_too(exported, examples):
    from spanshot.learner import LinearLearner

    model = spanshot.load_model(exported)
    assert isinstance(model.method, LinearLearner)
    tagger = spanshot.learn(examples, model=model, threshold=0.0)
    assert tagger(TEXT)
    assert spanshot.load_model(exported, dtype="int8").learn(examples, threshold=0.0)(TEXT)


def test_without_8_bits_the_folder_lacks_that_graph_and_loading_says_so(own, exported, tmp_path, spanshot):
    result = spanshot("export", own, "--output", tmp_path / "model", "--no-int8")
    assert (result.code, result.err) == (0, "")
    missing = {path.name for path in exported.iterdir()} - {path.name for path in (tmp_path / "model").iterdir()}
    assert [name for name in missing if "int8" in name] == list(missing)
    import spanshot as package

    package.load_model(tmp_path / "model")
    with pytest.raises(CheckpointError, match="exported without 8-bit weights"):
        package.load_model(tmp_path / "model", dtype="int8")


def test_a_model_of_another_method_is_refused_in_one_line(trained, tmp_path, spanshot):
    result = spanshot("export", trained, "--output", tmp_path / "model")
    assert result.code == 2
    assert result.err == "spanshot: error: only models of the method 'linear' can be exported; this one is 'esd'\n"
    assert not (tmp_path / "model").exists()


def test_without_the_extra_export_says_what_to_install(own, tmp_path):
    process = without_torch("export", own, "--output", tmp_path / "model")
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert "pip install 'spanshot[train]'" in process.stderr


def test_a_trained_model_that_was_not_exported_needs_torch_and_says_how_to_do_without(own, examples):
    process = without_torch("tag", "--model", own, "-e", examples, TEXT)
    assert process.returncode == 2
    assert "spanshot export" in process.stderr


def test_folders_of_other_things_are_not_overwritten(own, trained, tmp_path, spanshot):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for target in (tmp_path, trained):
        result = spanshot("export", own, "--output", target)
        assert result.code == 2
        assert result.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert "is also an input" in spanshot("export", own / "best", "--output", own / "best").err


@pytest.mark.parametrize(("run", "folder"), [("runs/own", "runs/own-exported"), ("own/", "own-exported")])
def test_the_default_folder_lies_beside_the_run(run, folder):
    assert default_output(Path(run)) == Path(folder)


def test_the_default_folder_of_the_current_folder_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_output(Path()) == tmp_path.with_name(f"{tmp_path.name}-exported")
