"""Whatever is wrong with the input: one line that says what and where, exit code 2, nothing half-written."""

import json
import os
import shutil

import pytest

from spanshot.manifest import MANIFEST, Manifest
from spanshot.research.corpora.episode_files import write_episodes
from tiny import toy_episodes


def listing(folder):
    """All files with their contents."""
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.fixture
def refused(spanshot, tmp_path, monkeypatch):
    """Runs a command that must fail; returns its error output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        before = listing(tmp_path)
        result = spanshot(*arguments)
        assert result.code == 2, result
        assert result.out == ""
        assert result.err.startswith("spanshot: error: ")
        assert result.err.count("\n") == 1
        assert result.err.endswith("\n")
        assert listing(tmp_path) == before
        return result.err.removeprefix("spanshot: error: ").strip()

    return run


@pytest.fixture
def config(lab, tmp_path):
    """A good config of one's own, to be spoilt."""
    shutil.copy(lab / "toy.toml", tmp_path / "toy.toml")
    return tmp_path / "toy.toml"


EPISODE = {
    "support": {"word": [["Rome", "fell"]], "label": [["city", "O"]]},
    "query": {"word": [["Oslo"]], "label": [["city"]]},
    "types": ["city"],
}


def spoilt(**changes):
    return {**EPISODE, **changes}


def test_a_missing_config(refused):
    assert refused("train", "nowhere.toml").startswith("nowhere.toml: no such config file; `spanshot train --list`")


def test_a_folder_for_a_config(refused, tmp_path):
    assert "is a folder; give a TOML file" in refused("train", tmp_path)


def test_malformed_toml(refused, tmp_path):
    (tmp_path / "bad.toml").write_text("[train\nsteps = 1\n", encoding="utf-8")
    message = refused("train", tmp_path / "bad.toml")
    assert "bad.toml: not valid TOML" in message
    assert "line 1" in message


def test_unknown_settings_and_bad_values_are_told_together(refused, config):
    message = refused("train", config, "train.stepz=3", "method.refine=gready", "train.batch=many", "encodr.name=x")
    assert "unknown setting 'train.stepz'; did you mean 'steps'?" in message
    assert "refine must be one of" in message
    assert "setting 'train.batch' must be of type int; found 'many'" in message
    assert "unknown section or setting 'encodr'; did you mean 'encoder'?" in message


@pytest.mark.parametrize("override", ["train.batch=0", "train.warmup=2", "train.o_biases=[1.0]", "method.dropout=1.5"])
def test_a_value_out_of_range(refused, config, override):
    assert override.partition("=")[0].partition(".")[2] in refused("train", config, override)


def test_an_override_without_a_value(refused, config):
    assert "must look like train.steps=100; found 'train.steps'" in refused("train", config, "train.steps")


def test_a_missing_data_file(refused, config):
    assert refused("train", config, "data.dev=no.jsonl") == "no.jsonl: no such file; check the path"


def test_a_missing_encoder(refused, config, tmp_path):
    message = refused("train", config, f"encoder.name={tmp_path / 'none'}")
    assert "could not be loaded" in message
    assert "minilm" in message


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("{not json", "malformed JSON at character 2"),
        (spoilt(query={"word": [["a", "b"]], "label": [["O"]]}), "query, sentence 1: 2 words but 1 labels"),
        (spoilt(query={"word": [[]], "label": [[]]}), "query, sentence 1: the sentence is empty"),
        (spoilt(query={"word": [["w"] * 5000], "label": [["O"] * 5000]}), "the sentence has 5,000 words"),
        (spoilt(types=["city", "person"]), "no example for label 'person': mark at least one span of it"),
        (spoilt(query={"word": [["Ada"]], "label": [["person"]]}), "the query marks labels that the support set lacks"),
    ],
)
def test_a_bad_episode_is_named_with_its_file_and_line(refused, config, tmp_path, record, problem):
    path = tmp_path / "bad.jsonl"
    text = record if isinstance(record, str) else json.dumps(record)
    path.write_text(f"{json.dumps(EPISODE)}\n{text}\n", encoding="utf-8")
    message = refused("train", config, f"data.train={path}")
    assert message.startswith(f"{path}:2: ")
    assert problem in message


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("Rome B-city\nfell\n", 2, "found 1 columns; expected 2"),
        ("Rome B-city\n\n" + "w O\n" * 5000, 1003, "is a blank line between sentences missing?"),
        ("Rome B-city\nfell U-x\n", 2, "tag 'U-x' is not one of the bio scheme"),
    ],
)
def test_bad_columns_are_named_with_their_file_and_line(refused, tmp_path, text, line, problem):
    path = tmp_path / "corpus.txt"
    path.write_text(text, encoding="utf-8")
    message = refused("sample", path, "--output", tmp_path / "out.jsonl", "--scheme", "bio")
    assert message.startswith(f"{path}:{line}: ")
    assert problem in message


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--scheme", "boi"], "unknown tag scheme 'boi': choose one of io, bio, bioes; did you mean 'bio'?"),
        (["--format", "column"], "--format must be one of guess, columns, genia; found 'column'"),
        (["--rule", "fewner"], "--rule must be one of fewnerd, minimum; found 'fewner'; did you mean 'fewnerd'?"),
        (["--query-size", "5"], "--query-size cannot be used with --rule fewnerd"),
        (["--count", "0"], "--count must be at least 1; found 0"),
        (["--shots", "0"], "k must be at least 1; found 0"),
        (["--ways", "9"], "9-way 1-shot episodes need 9 labels with at least 2 spans"),
        (["--rule", "minimum", "--shots", "50"], "label 'city' has 2 spans; a 50-shot support needs 50"),
    ],
)
def test_a_sample_that_cannot_be_drawn(refused, tmp_path, options, problem):
    path = tmp_path / "corpus.txt"
    path.write_text("Rome B-city\n\nOslo B-city\n", encoding="utf-8")
    assert refused("sample", path, "--output", tmp_path / "out.jsonl", *options).startswith(problem)


def test_an_output_that_cannot_be_written(refused, tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("Rome B-city\n\nOslo B-city\n", encoding="utf-8")
    message = refused("sample", path, "--ways", "1", "--output", tmp_path / "none" / "out.jsonl")
    assert "cannot be written" in message


def test_a_run_folder_with_other_settings(refused, trained, config, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(trained / "config.toml", run)
    message = refused("train", config, "seed=5", "--run", run)
    wanted = "contains a run with other settings; choose another folder, or use the same settings to resume it"
    assert message == f"{run} {wanted}"


def test_a_run_that_has_ended(refused, trained, config, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    assert "contains a finished run" in refused("train", config, "--run", tmp_path / "run")


def test_a_damaged_state_to_resume_from(refused, trained, config, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(trained / "config.toml", run)
    (run / "resume.safetensors").write_bytes(b"cut off")
    assert "remove it to start the run again" in refused("train", config, "--run", run)


@pytest.mark.parametrize("name", ["model.toml", "weights.safetensors", "tokenizer.json", "checkpoint.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "empty", "other"])
def test_a_damaged_checkpoint(refused, trained, tmp_path, name, damage):
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    stored = {**{key: file.file for key, file in Manifest.read(run / "best").files.items()}, MANIFEST: MANIFEST}
    path = run / "best" / stored[name]
    match damage:
        case "missing":
            path.unlink()
        case "cut":
            os.truncate(path, path.stat().st_size // 2)
        case "empty":
            path.write_bytes(b"")
        case "other":
            path.write_text("[]", encoding="utf-8")
    assert str(run / "best") in refused("evaluate", run)


def test_a_checkpoint_of_another_format(refused, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    manifest = tmp_path / "run" / "best" / "checkpoint.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}), encoding="utf-8")
    assert "checkpoint format 99; this version of spanshot reads format 1" in refused("evaluate", tmp_path / "run")


def test_a_folder_that_holds_no_checkpoint(refused, tmp_path):
    assert "no such checkpoint folder" in refused("evaluate", tmp_path / "none")
    assert "not a checkpoint" in refused("evaluate", tmp_path)


def test_an_unknown_split(refused, trained):
    message = refused("evaluate", trained, "--split", "tset")
    assert message == "split must be one of train, dev, test; found 'tset'; did you mean 'test'?"


def test_a_split_that_the_run_names_no_file_for(refused, trained):
    assert "data.test is not set" in refused("evaluate", trained, "data.test=")


def test_a_setting_that_a_trained_model_cannot_change(refused, trained):
    assert "only settings of [data] and [method] can be changed" in refused("evaluate", trained, "train.steps=3")


def test_an_unknown_method(refused, config):
    assert "method.name must be one of" in refused("train", config, "method.name=ezd")


def test_usage_errors_end_with_code_2_too(spanshot, trained):
    for arguments in (["train"], ["evaluate"], ["nonsense"], ["evaluate", trained, "--nonsense"], ["evaluate", "a=b"]):
        result = spanshot(*arguments)
        assert result.code == 2, arguments
        assert "Traceback" not in result.err


def test_an_interrupted_write_leaves_the_old_episodes(spanshot, tmp_path):
    path = tmp_path / "out.jsonl"
    write_episodes(path, toy_episodes(1))
    before = path.read_bytes()
    (tmp_path / "corpus.txt").write_text("Rome B-city\n", encoding="utf-8")
    assert spanshot("sample", tmp_path / "corpus.txt", "--output", path).code == 2
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus.txt", "out.jsonl"]
