"""``spanshot tag-corpus`` end to end: the command, and jobs that are killed.

The environment variable SPANSHOT_KILLS sets the number of kills at random moments.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import spanshot as package
from killable_corpus import SETTINGS, DeadlyTagger, DyingTagger, PickyTagger
from spanshot.corpus import CorpusReport, tag_corpus
from spanshot.errors import ConfigError, DataError
from stub_tagger import NameTagger

TESTS = Path(__file__).parents[1]
SOURCE = Path(package.__file__).parents[1]
KILLS = int(os.environ.get("SPANSHOT_KILLS", "4"))
ROWS = 2600
needs_kill = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    """Two files with rows that fail here and there, in six parts."""
    folder = tmp_path_factory.mktemp("texts")
    for name, count in (("a", 1600), ("b", 1000)):
        rows = ({"id": n, "text": f"Ada saw Oslo {n}" if n % 97 else None} for n in range(count))
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return folder


def job(
    texts: Path, out: Path, *, driver: str = "", worker: str = "", marker: str = "", seconds: float = 0, runner="local"
) -> subprocess.Popen[bytes]:
    """Start a job in a process of its own."""
    search = os.pathsep.join([str(SOURCE), str(TESTS)])
    command = [
        sys.executable,
        "-c",
        "from killable_corpus import main; main()",
        f"{texts}/*.jsonl",
        out,
        driver,
        worker,
        marker,
    ]
    environment = os.environ | {"PYTHONPATH": search}
    return subprocess.Popen([*map(str, command), str(seconds), runner], env=environment, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> int:
    errors = process.communicate(timeout=120)[1]
    assert process.returncode in {0, -signal.SIGKILL}, errors.decode()
    return process.returncode


def output(out: Path) -> dict[str, bytes]:
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in out.glob("*/part-*")}


def check(out: Path, wanted: dict[str, bytes]) -> None:
    """Check that the output is the same as that of an undisturbed job, and that the manifest has each part once."""
    assert output(out) == wanted
    lines = [json.loads(line) for line in (out / "manifest.jsonl").open(encoding="utf-8")]
    assert sorted(line["part"] for line in lines) == list(range(6))
    assert sum(line["rows"] + line["failed"] for line in lines) == ROWS
    assert not list(out.rglob(".*"))


@pytest.fixture(scope="module")
def undisturbed(texts, tmp_path_factory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert finish(job(texts, out)) == 0
    files = output(out)
    rows = [line for name, content in files.items() for line in content.splitlines() if name.startswith("tagged")]
    ids = sorted(json.loads(row)["id"] for row in rows)
    assert ids == sorted(n for count in (1600, 1000) for n in range(count) if n % 97)
    return files


@needs_kill
@pytest.mark.parametrize("moment", ["unrecorded 1", "recorded 3", "torn 2", "rename 1"])
def test_a_job_whose_driver_is_killed_continues(texts, undisturbed, tmp_path, moment):
    out = tmp_path / "out"
    assert finish(job(texts, out, driver=moment)) == -signal.SIGKILL
    assert finish(job(texts, out)) == 0
    check(out, undisturbed)


@needs_kill
@pytest.mark.parametrize("moment", ["tag 1", "tag 4", "before", "after"])
def test_a_worker_that_is_killed_is_replaced_and_the_job_ends_as_if_nothing_had_happened(
    texts, undisturbed, tmp_path, moment
):
    marker = tmp_path / "marker"
    assert finish(job(texts, tmp_path / "out", worker=moment, marker=str(marker))) == 0
    assert marker.exists()
    check(tmp_path / "out", undisturbed)


def children(process: int) -> list[int]:
    """Return the child processes of a process."""
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(pid) for pid, parent in map(str.split, listing.splitlines()) if int(parent) == process]


@needs_kill
def test_drivers_and_workers_killed_at_random_moments_leave_the_same_output(texts, undisturbed, tmp_path):
    rng = random.Random(5)
    finished = 0
    out = tmp_path / "out0"
    kills = {"driver": 0, "worker": 0}
    while sum(kills.values()) < KILLS:
        process = job(texts, out, seconds=0.05)
        time.sleep(rng.uniform(0.2, 1.2))
        victims = [process.pid] if rng.random() < 0.5 else children(process.pid)
        if victims and process.poll() is None:
            victim = rng.choice(victims)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            finally:
                kills["driver" if victim == process.pid else "worker"] += 1
        ended = finish(process)
        if ended == 0:
            check(out, undisturbed)
            finished += 1
            out = tmp_path / f"out{finished}"  # a folder of its own, as a job on a finished one ends before any kill
    assert finish(job(texts, out)) == 0
    check(out, undisturbed)


@needs_kill
def test_workers_end_when_their_driver_is_killed(texts, tmp_path):
    process = job(texts, tmp_path / "out", seconds=30)
    while len(children(process.pid)) < 2:
        time.sleep(0.02)
    workers = children(process.pid)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    while any(is_running(worker) for worker in workers):
        assert time.monotonic() < deadline, "a worker outlives its driver"
        time.sleep(0.05)


def is_running(process: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


@needs_kill
def test_a_second_job_on_the_same_folder_is_refused_while_the_first_one_runs(texts, tmp_path):
    first = job(texts, tmp_path / "out", seconds=30)
    while not children(first.pid):
        time.sleep(0.02)
    second = job(texts, tmp_path / "out")
    errors = second.communicate(timeout=60)[1].decode()
    first.kill()
    first.communicate()
    assert "another job is writing to this folder" in errors


@needs_kill
def test_a_job_that_cannot_write_ends_with_one_error_and_continues_later(texts, undisturbed, tmp_path):
    resource = pytest.importorskip("resource")
    out = tmp_path / "out"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))  # for the job, which inherits it
    try:
        process = job(texts, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    errors = process.communicate(timeout=60)[1].decode()
    assert "cannot be written: File too large" in errors.splitlines()[-1]
    assert finish(job(texts, out)) == 0
    check(out, undisturbed)


# Ray


@pytest.fixture(scope="module")
def cluster():
    """Ray on this machine, whose workers find the stub taggers."""
    ray = pytest.importorskip("ray", reason="needs the extra [ray]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), str(TESTS)]))
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield
        ray.shutdown()


def on_ray(texts: Path, out: Path, tagger: NameTagger) -> CorpusReport:
    return tag_corpus(tagger, f"{texts}/*.jsonl", out, SETTINGS, workers=2, runner="ray")


@pytest.mark.usefixtures("cluster")
def test_ray_writes_the_same_output_and_continues_jobs_of_the_local_mode(texts, undisturbed, tmp_path):
    out = tmp_path / "out"
    tagger = DyingTagger()
    tag_corpus(tagger, f"{texts}/*.jsonl", out, SETTINGS, workers=1)
    for name in ("part-00000-000001", "part-00001-000000"):
        (out / "tagged" / f"{name}.jsonl").unlink()
    report = on_ray(texts, out, tagger)
    assert (report.parts, report.rows + report.failed, report.rows_before) == (6, ROWS, ROWS - 1024)
    assert output(out) == undisturbed


@needs_kill
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("moment", ["tag 2", "after"])
def test_ray_replaces_a_worker_that_is_killed(texts, undisturbed, tmp_path, moment):
    marker = tmp_path / "marker"
    on_ray(texts, tmp_path / "out", DyingTagger(moment=moment, marker=str(marker)))
    assert marker.exists()
    check(tmp_path / "out", undisturbed)


@needs_kill
@pytest.mark.usefixtures("cluster")
def test_ray_gives_up_a_part_that_kills_every_worker(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "deadly"}\n', encoding="utf-8")
    with pytest.raises(DataError, match="rows 0 to 1: the worker died 5 times"):
        on_ray(tmp_path, tmp_path / "out", DeadlyTagger())


@pytest.mark.usefixtures("cluster")
def test_errors_on_ray_are_the_same_as_in_local_mode(texts, tmp_path):
    (tmp_path / "a.csv").write_text("words\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column 'text'"):
        tag_corpus(NameTagger(), tmp_path / "a.csv", tmp_path / "out", runner="ray")
    with pytest.raises(DataError, match="'Ada' in a text"):
        on_ray(texts, tmp_path / "out", PickyTagger(word="Ada"))


@needs_kill
def test_a_job_on_ray_whose_driver_is_killed_continues_in_local_mode(texts, undisturbed, tmp_path):
    pytest.importorskip("ray", reason="needs the extra [ray]")
    out = tmp_path / "out"
    assert finish(job(texts, out, driver="recorded 2", runner="ray")) == -signal.SIGKILL
    assert finish(job(texts, out)) == 0
    check(out, undisturbed)


def test_a_cluster_that_does_not_answer_is_one_clear_error(texts, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="needs the extra [ray]")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # other tests of this process may be connected
    with pytest.raises(ConfigError, match=r"cannot connect to Ray at 127\.0\.0\.1:9: .*refused"):
        tag_corpus(NameTagger(), f"{texts}/*.jsonl", tmp_path / "out", address="127.0.0.1:9")


def test_the_runner_for_ray_names_the_package_that_is_missing(texts, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=re.escape("pip install 'spanshot[ray]'")):
        on_ray(texts, tmp_path / "out", NameTagger())


# The command


@pytest.fixture(scope="module")
def tagger(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tagger") / "tagger"
    package.learn(["[Ada](person) saw [Oslo](city).", "[Bo](person) left [Rome](city)."]).save(folder)
    return folder


def test_the_command_tags_continues_and_reports_failed_rows(spanshot, tagger, tmp_path):
    lines = ["id,text", *(f"{n},Ada saw Oslo {n}" for n in range(300)), "300"]
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "out"
    arguments = ("tag-corpus", "--tagger", tagger, "-i", f"{tmp_path}/*.csv", "-o", out, "--to", "jsonl", "--rows", 256)
    plan = spanshot(*arguments, "--dry-run", "--workers", 2)
    assert plan.code == 0, plan.err
    assert f"1 file, 301 rows, 2 parts in {out}" in plan.out
    assert "2 workers: about" in plan.out
    assert not out.exists()
    result = spanshot(*arguments, "--workers", 1)
    assert result.code == 1
    assert "300 rows, " in result.out
    assert "1 row could not be tagged" in result.err
    rows = [json.loads(line) for path in sorted((out / "tagged").iterdir()) for line in path.open(encoding="utf-8")]
    assert [row["id"] for row in rows] == [str(n) for n in range(300)]
    assert [entity["label"] for entity in rows[7]["entities"]] == ["person", "city"]
    assert "301 rows were done before" in spanshot(*arguments).out
    refused = spanshot(*arguments, "--max-characters", 5)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "max_characters was 1000000 and is 5" in refused.err


def test_wrong_arguments_are_one_line(spanshot, tagger, tmp_path):
    for arguments, problem in [
        (("--tagger", tagger, "-i", "none*", "-o", tmp_path / "out"), "no file matches 'none*'"),
        (("--tagger", tagger, "-i", __file__, "-o", tmp_path / "out"), "expected a file of Parquet"),
        (("--tagger", tagger, "-o", tmp_path / "out"), "Missing option '--input'"),
    ]:
        result = spanshot("tag-corpus", *arguments)
        assert result.code == 2
        assert problem in result.err
        assert result.err.count("\n") == 1
