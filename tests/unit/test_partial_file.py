"""Results of a killed job: the old file or the whole new one, and a partial file that can be continued."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from spanshot.cli.output import PartialFile, fingerprint, open_results
from spanshot.errors import ConfigError, DataError

LINES = [f"line {number}" for number in range(12)]
WHOLE = "".join(f"{line}\n" for line in LINES)


def work(output: Path, *, resume: bool) -> None:
    """Write all lines, and save after every third."""
    results = PartialFile(output, "job", resume=resume)
    for number, line in enumerate(LINES):
        if number < results.done.inputs:
            continue
        results.write(line)
        if number % 3 == 2:
            results.save(number + 1, "digest")
    results.finish()


def die_at(step: int) -> None:
    """Kill this process at the given call of any function that changes a file."""
    calls = 0

    def counted(function):
        def called(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == step:
                os._exit(9)
            return function(*arguments, **options)

        return called

    for name in ("open", "replace", "unlink", "fsync", "rename"):
        setattr(os, name, counted(getattr(os, name)))
    PartialFile.write = counted(PartialFile.write)
    PartialFile.save = counted(PartialFile.save)
    Path.replace = counted(Path.replace)
    Path.unlink = counted(Path.unlink)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("step", range(1, 60, 2))
def test_a_job_killed_at_any_step_leaves_the_old_file_or_the_new_one_and_can_be_continued(tmp_path, step):
    output = tmp_path / "out.jsonl"
    output.write_text("old", encoding="utf-8")
    child = os.fork()
    if not child:
        try:
            die_at(step)
            work(output, resume=False)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    killed = os.waitstatus_to_exitcode(status) == 9
    assert output.read_text(encoding="utf-8") in ({"old", WHOLE} if killed else {WHOLE})
    work(output, resume=True)
    assert output.read_text(encoding="utf-8") == WHOLE
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_damaged_progress_is_named(tmp_path):
    output = tmp_path / "out.jsonl"
    results = PartialFile(output, "job", resume=False)
    results.write("line")
    results.save(1, "digest")
    results.stop()
    progress = tmp_path / ".out.jsonl.spanshot-progress"
    record = progress.read_text(encoding="utf-8")
    for damaged in ("{", record.replace('"bytes": 5', '"bytes": -5'), record.replace('"inputs": 1', '"inputs": -1')):
        assert damaged != record
        progress.write_text(damaged, encoding="utf-8")
        with pytest.raises(DataError, match="spanshot-progress: damaged"):
            PartialFile(output, "job", resume=True)
    progress.write_text(record, encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot resume"):
        PartialFile(output, "another job", resume=True)
    (tmp_path / ".out.jsonl.spanshot-partial").write_text("l", encoding="utf-8")
    with pytest.raises(DataError, match="shorter than recorded"):
        PartialFile(output, "job", resume=True)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_an_open_file_such_as_standard_output_is_appended_to_and_not_replaced(tmp_path):
    log = tmp_path / "log"
    log.write_text("old\n", encoding="utf-8")
    with log.open("a", encoding="utf-8") as file:
        results = open_results(Path(f"/dev/fd/{file.fileno()}"), "job", resume=False)
        results.write("new")
        results.finish()
    assert log.read_text(encoding="utf-8") == "old\nnew\n"
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_fingerprint_changes_with_options_and_content(tmp_path):
    path = tmp_path / "examples.txt"
    path.write_text("a", encoding="utf-8")
    first = fingerprint(["0.5", True], [path, tmp_path])
    assert fingerprint(["0.5", True], [path, tmp_path]) == first
    assert fingerprint(["0.6", True], [path, tmp_path]) != first
    path.write_text("b", encoding="utf-8")
    assert fingerprint(["0.5", True], [path]) != fingerprint(["0.5", True], [])
    assert fingerprint(["0.5", True], [path, tmp_path]) != first
