"""A full disk stops a run with one line, leaves nothing behind, and the run can be resumed."""

from __future__ import annotations

import sys

import pytest

if sys.platform == "win32":
    pytest.skip("file size limits of POSIX", allow_module_level=True)

import resource


@pytest.fixture
def limit_file_size():
    """Make every write beyond so many bytes fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("save_every", "written"), [(1, "state"), (1000, "checkpoint")])
def test_a_full_disk_ends_training_with_one_line_and_without_leftovers(
    spanshot, lab, tmp_path, limit_file_size, save_every, written
):
    run = tmp_path / "run"
    arguments = ("train", lab / "toy.toml", f"train.save_every={save_every}", "--run", run, "--quiet")
    limit_file_size(50_000)  # enough for settings and metrics, not for the state of the run or a checkpoint
    result = spanshot(*arguments)
    assert result.code == 2
    assert result.err.startswith("spanshot: error: ")
    assert ("resume.safetensors" if written == "state" else str(run / "best")) in result.err
    assert "File too large" in result.err
    assert result.err.count("\n") == 1
    assert sorted(path.name for path in run.iterdir()) == ["config.toml", "metrics.jsonl"]

    limit_file_size(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    assert spanshot(*arguments).code == 0
    names = {path.name for path in run.iterdir()}
    assert names == {"best", "config.toml", "metrics.jsonl", "result.json"}


def test_a_full_disk_while_metrics_are_written_is_one_line_too(spanshot, lab, tmp_path, limit_file_size):
    run = tmp_path / "run"
    run.mkdir()
    limit_file_size(3_000)
    seldom = ("train.save_every=1000", "train.evaluate_every=1000")
    result = spanshot("train", lab / "toy.toml", "--run", run, "--quiet", *seldom, "train.steps=300")
    assert result.code == 2
    assert result.err.count("\n") == 1
