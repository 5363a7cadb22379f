"""`accelerate launch … spanshot train` with two processes on a CPU: one result, written by one process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from spanshot.research.corpora.episode_files import write_episodes
from spanshot.settings import to_toml
from tiny import toy_episodes, write_tiny_encoder

STEPS = 6
LAUNCH = ("accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1")
LAUNCH += ("--mixed_precision", "no", "--dynamo_backend", "no")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups of POSIX")


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for seed, split in enumerate(("train", "dev")):
        write_episodes(folder / f"{split}.jsonl", toy_episodes(5, seed=seed))
    table = {
        "method": {"name": "esd", "size": 8, "longest": 3},
        "data": {"kind": "episodes", "train": str(folder / "train.jsonl"), "dev": str(folder / "dev.jsonl")},
        "encoder": {"name": str(write_tiny_encoder(folder / "encoder"))},
        "train": {
            "steps": STEPS,
            "batch": 1,
            "accumulate": 2,
            "encoder_rate": 2e-3,
            "head_rate": 5e-3,
            "evaluate_every": 3,
            "save_every": 1,
            "keep": "last",
        },
    }
    (folder / "toy.toml").write_text(to_toml(table), encoding="utf-8")
    return folder / "toy.toml"


def launch(config: Path, run: Path) -> subprocess.Popen[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", *LAUNCH, "--main_process_port", str(port)]
    command += ["-m", "spanshot", "train", str(config), "--run", str(run)]
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": source, "GLOO_SOCKET_IFNAME": loopback()}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def loopback() -> str:
    names = [name for _, name in socket.if_nameindex()]
    return next(name for name in names if name.startswith("lo"))


def trained(config: Path, run: Path) -> subprocess.Popen[str]:
    process = launch(config, run)
    process.out, process.err = process.communicate(timeout=600)
    assert process.returncode == 0, process.err
    return process


@pytest.fixture(scope="module")
def undisturbed(config, tmp_path_factory) -> tuple[Path, subprocess.Popen[str]]:
    run = tmp_path_factory.mktemp("runs") / "undisturbed"
    return run, trained(config, run)


def metrics(run: Path) -> list[dict[str, object]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def weights(run: Path) -> dict[str, torch.Tensor]:
    (path,) = run.glob("best/*.safetensors")
    return load_file(path)


def assert_alike(run: Path, other: Path) -> None:
    assert metrics(run) == metrics(other)
    assert sorted(path.name for path in run.iterdir()) == sorted(path.name for path in other.iterdir())
    found, wanted = weights(run), weights(other)
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if not torch.equal(found[name], wanted[name])] == []


def test_only_one_process_writes_and_speaks(undisturbed):
    run, process = undisturbed
    lines = metrics(run)
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, STEPS + 1))
    assert [line["step"] for line in lines if "dev_f1" in line] == [3, STEPS]
    assert (process.out + process.err).count(f"Training in {run}") == 1


def test_dev_f1_is_that_of_all_dev_episodes_together(undisturbed, spanshot):
    """Each process evaluates some of the five dev episodes; one process alone finds the same F1 in all of them."""
    run, _ = undisturbed
    document = json.loads(spanshot("evaluate", run, "--split", "dev", "--episodes", 5, "--json").out)
    assert document["runs"][0]["episodes"] == 5
    assert document["runs"][0]["f1"] == pytest.approx(metrics(run)[-1]["dev_f1"])


def test_the_same_seed_gives_the_same_weights_twice(config, undisturbed, tmp_path):
    run, _ = undisturbed
    trained(config, tmp_path / "again")
    assert_alike(tmp_path / "again", run)


def test_a_run_continues_after_one_of_its_processes_was_killed(config, undisturbed, tmp_path):
    run, _ = undisturbed
    folder = tmp_path / "killed"
    process = launch(config, folder)
    file = folder / "metrics.jsonl"
    while process.poll() is None and not (file.is_file() and len(file.read_text(encoding="utf-8").splitlines()) > 1):
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()[1]
    os.kill(ranks_of(process.pid)[-1], signal.SIGKILL)
    process.communicate(timeout=600)
    assert process.returncode != 0
    assert not (folder / "result.json").exists()
    trained(config, folder)
    assert_alike(folder, run)


def ranks_of(launcher: int) -> list[int]:
    listing = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listing.splitlines()]
    return sorted(pid for pid, parent in pairs if parent == launcher)
