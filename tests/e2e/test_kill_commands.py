"""`learn`, `tag`, `train` and `compare`, killed at random moments: the old state is there, or the complete new one.

The environment variable SPANSHOT_KILLS sets the number of kills per command.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

import spanshot
from spanshot.cli.main import main
from spanshot.research.checkpoint import load, weights_of
from spanshot.settings import read_table, to_toml

KILLS = int(os.environ.get("SPANSHOT_KILLS", "4"))
SAVING = 0.05
"""About how many seconds it takes to save the tiny tagger, or to write the results of the tiny job."""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")


def start(*arguments: object) -> int:
    """Start a command in a process of its own, without its output; return the number of the process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        main([str(argument) for argument in arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)


def run(*arguments: object) -> float:
    """Run a command to its end; return how long that took."""
    began = time.perf_counter()
    assert os.waitpid(start(*arguments), 0)[1] == 0
    return time.perf_counter() - began


def killed(seconds: float, *arguments: object, writes: Path | None = None) -> bool:
    """Run a command and kill it after some seconds. Return False if it ended before.

    With `writes`, count the seconds from the moment at which something in that folder changes.
    """
    before = writes and state(writes)
    child = start(*arguments)
    while writes and state(writes) == before:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert status in {0, signal.SIGKILL}
    return status == signal.SIGKILL


def state(folder: Path) -> set[tuple[str, int]]:
    """Return the names and times of all files and folders in a folder."""
    found = set()
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found.add((str(path), path.stat().st_mtime_ns))
    return found


@pytest.fixture
def report(record_property, capsys, request):
    """Tell how many kills fell where, with `pytest -s`."""

    def tell(**figures: int) -> None:
        record_property("kills", figures)
        with capsys.disabled():
            if KILLS >= 50:
                print(f"\n{request.node.name}: {figures}")

    return tell


@pytest.fixture
def rng() -> random.Random:
    return random.Random(7)


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*")]


def test_learn(model, examples, tmp_path, rng, report):
    other = tmp_path / "other.txt"
    other.write_text("[soup](dish) today\n[apple pie](dish) again\n", encoding="utf-8")
    labels = {examples: ("city", "person"), other: ("dish",)}
    parent = tmp_path / "saved"
    folder = parent / "mine"
    seconds = max(run("learn", "-m", model, "-e", examples, "-o", folder) for _ in range(2))
    now = examples
    counts = {"killed": 0, "old": 0, "new": 0, "none": 0, "leftovers": 0}
    for number in range(10 * KILLS):
        new = other if now == examples else examples
        if number % 3 == 2:  # a folder that is new
            folder = parent / f"mine-{number}"
        command = ("learn", "-m", model, "-e", new, "-o", folder)
        aimed = number % 2 == 0
        if not killed(rng.uniform(0, SAVING if aimed else seconds), *command, writes=parent if aimed else None):
            assert spanshot.load(folder).labels == labels[new]
            now = new
            continue
        counts["killed"] += 1
        counts["leftovers"] += bool(hidden(parent))
        if not folder.exists():
            counts["none"] += 1
            run("learn", "-m", model, "-e", new, "-o", folder)
            now = new
        elif spanshot.load(folder).labels == labels[new]:
            counts["new"] += 1
            now = new
        else:
            assert spanshot.load(folder).labels == labels[now]
            counts["old"] += 1
        if counts["killed"] == KILLS:
            break
    report(**counts)
    assert counts["killed"] == KILLS
    run("learn", "-m", model, "-e", other, "-o", parent / "last")  # removes hidden neighbours
    for killed_in in {path.parent for path in parent.rglob(".*")} | {folder}:
        run("learn", "-m", model, "-e", examples, "-o", killed_in)  # removes hidden files within
        run("learn", "-m", model, "-e", other, "-o", killed_in)
        assert spanshot.load(killed_in).labels == ("dish",)
    assert hidden(parent) == []


def test_tag(model, examples, tmp_path, rng, report):
    texts = tmp_path / "texts.txt"
    texts.write_text("they asked for Lima with Grace today\n" * 40, encoding="utf-8")
    out = tmp_path / "results" / "out.jsonl"
    out.parent.mkdir()
    command = ("tag", "-m", model, "-e", examples, "-i", texts, "-o", out)
    seconds = max(run(*command) for _ in range(2))
    whole = out.read_bytes()
    counts = {"killed": 0, "old": 0, "new": 0, "resumed": 0}
    for number in range(10 * KILLS):
        out.write_bytes(b"old\n")
        aimed = number % 2 == 0
        wait = rng.uniform(0, SAVING if aimed else seconds)
        was_killed = killed(wait, *command, writes=out.parent if aimed else None)
        found = out.read_bytes()
        assert found in ({b"old\n", whole} if was_killed else {whole})
        if was_killed:
            counts["killed"] += 1
            counts["new" if found == whole else "old"] += 1
            if found != whole and hidden(out.parent):
                counts["resumed"] += 1
                run(*command, "--resume")
                assert out.read_bytes() == whole
        if counts["killed"] == KILLS:
            break
    report(**counts)
    assert counts["killed"] == KILLS
    run(*command)
    assert out.read_bytes() == whole
    assert hidden(out.parent) == []


def without_times(value: object) -> object:
    """Return a JSON value without times and the names of folders."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if "seconds" not in key and key not in {"run"}}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def outcome(folder: Path) -> dict[str, object]:
    ended: dict[str, object] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return {name: value for name, value in ended.items() if "seconds" not in name}


def assert_same_run(folder: Path, whole: Path) -> None:
    assert outcome(folder) == outcome(whole)
    found, wanted = weights_of(load(folder).method), weights_of(load(whole).method)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], weight) for name, weight in wanted.items())


def test_train(lab, tmp_path, rng, report):
    config, whole = lab / "toy.toml", tmp_path / "whole"
    seconds = run("train", config, "--run", whole, "--quiet")
    counts = {"killed": 0, "runs": 0}
    while counts["killed"] < KILLS:
        folder = tmp_path / f"run{counts['runs']}"
        seen = False
        while not (folder / "result.json").exists():
            if not killed(rng.uniform(0, seconds), "train", config, "--run", folder, "--quiet"):
                break
            counts["killed"] += 1
            seen = seen or (folder / "best").exists()
            if seen:
                load(folder)  # once there is a best checkpoint, there always is one, and it is whole
            if counts["killed"] >= KILLS:
                break
        if not (folder / "result.json").exists():
            run("train", config, "--run", folder, "--quiet")
        assert_same_run(folder, whole)
        counts["runs"] += 1
    report(**counts)


def test_compare(lab, tmp_path, rng, report):
    table = read_table(lab / "toy.toml")
    table["train"]["steps"] = 2
    configs = []
    for name, isa in (("isa", True), ("no-isa", False)):
        table["method"]["isa"] = isa
        configs.append(tmp_path / f"{name}.toml")
        configs[-1].write_text(to_toml(table), encoding="utf-8")

    def figures(folder: Path) -> list[object]:
        evaluations = sorted(folder.glob("*/evaluat*.json")) or sorted(folder.glob("*/*test*.json"))
        assert evaluations
        return [without_times(json.loads(path.read_text(encoding="utf-8"))) for path in evaluations]

    whole = tmp_path / "whole"
    seconds = run("compare", *configs, "--folder", whole, "--quiet")
    counts = {"killed": 0, "comparisons": 0}
    while counts["killed"] < KILLS:
        folder = tmp_path / f"runs{counts['comparisons']}"
        command = ("compare", *configs, "--folder", folder, "--quiet")
        while counts["killed"] < KILLS and killed(rng.uniform(0, seconds), *command):
            counts["killed"] += 1
            for path in folder.glob("**/*.json"):
                if "best" not in path.parts:
                    json.loads(path.read_text(encoding="utf-8"))
        run(*command)
        assert figures(folder) == figures(whole)
        for name in ("isa-seed1", "no-isa-seed1"):
            assert_same_run(folder / name, whole / name)
        counts["comparisons"] += 1
    report(**counts)
