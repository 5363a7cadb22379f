"""Training with two processes on a CPU: one result, written by one process, and exact after a kill.

The launcher is slow to start, so that some tests start the two processes by themselves.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file

from fork_server import PROCESSES
from ranks import free_port, loopback, train_rank
from spanshot.research.corpora.episode_files import write_episodes
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings
from spanshot.settings import to_toml
from tiny import toy_episodes, write_corpora, write_tiny_encoder

STEPS = 6
# On a CPU, `--cpu` would start one process only.
LAUNCH = ("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1")
LAUNCH += ("--mixed_precision", "no", "--dynamo_backend", "no")
if sys.platform == "win32":
    pytest.skip("signals and process groups of POSIX", allow_module_level=True)


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
            "batch": 1,
            "accumulate": 2,
            "encoder_rate": 2e-3,
            "head_rate": 5e-3,
            "evaluate_every": 3,
            "save_every": 1,
            "keep": "last",
        },
    }


def launch(table: dict[str, dict[str, object]], run: Path) -> subprocess.Popen[str]:
    """Start `accelerate launch … spanshot train`."""
    config = run.with_suffix(".toml")
    config.write_text(to_toml(table), encoding="utf-8")
    command = [sys.executable, "-m", *LAUNCH, "--main_process_port", str(free_port())]
    command += ["-m", "spanshot", "train", str(config), "--run", str(run)]
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": source, "GLOO_SOCKET_IFNAME": loopback()}
    environment |= {"ACCELERATE_USE_CPU": "true"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def train_twice(table, run: Path, killed: int | None = None, other: Path | None = None) -> list[int | None]:
    """Start both processes without a launcher and return their exit codes.

    One may be killed after its third event. The second may be given another folder.
    """
    port = free_port()
    started = []
    for rank, folder in enumerate((run, other or run)):
        moment = ("event", 3) if rank == killed else ()
        started.append(PROCESSES.Process(target=train_rank, args=(rank, port, table, str(folder), *moment)))
    for process in started:
        process.start()
    for process in started:
        process.join(120)  # none may wait for the other one forever
    return [process.exitcode for process in started]


@pytest.fixture(scope="module")
def undisturbed(table, tmp_path_factory) -> tuple[Path, subprocess.Popen[str]]:
    run = tmp_path_factory.mktemp("runs") / "undisturbed"
    process = launch(table, run)
    process.out, process.err = process.communicate(timeout=600)
    assert process.returncode == 0, process.err
    return run, process


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


def test_the_same_seed_gives_the_same_weights_twice_and_each_process_evaluates_a_share(table, undisturbed, tmp_path):
    run, _ = undisturbed
    assert train_twice(table, tmp_path / "again") == [0, 0]
    assert_alike(tmp_path / "again", run)
    shares = [json.loads((tmp_path / f"again-shares-{rank}").read_text(encoding="utf-8")) for rank in range(2)]
    assert shares == [[3, 3], [2, 2]]  # of five dev episodes, in two evaluations


def test_two_processes_compute_what_one_does_with_the_whole_batch(table, undisturbed, tmp_path):
    """Two processes with two batches of one episode; one process with two batches of two."""
    run, _ = undisturbed
    alone = {**table, "train": {**table["train"], "batch": 2}}
    list(run_training(RunSettings.of(alone), tmp_path / "alone", Accelerator(cpu=True)))
    losses, wanted = (
        [line["loss"] for line in metrics(folder) if "loss" in line] for folder in (run, tmp_path / "alone")
    )
    assert losses == pytest.approx(wanted, rel=1e-3)
    assert len(set(losses)) == STEPS
    expected = weights(tmp_path / "alone")
    for name, weight in weights(run).items():
        if name.endswith("key.bias") or name == "o_bias":
            continue  # a softmax does not feel the first, so that its gradient is rounding; the second is chosen by F1
        torch.testing.assert_close(weight, expected[name], atol=2e-4, rtol=1e-2)


def test_pools_and_averaged_weights_are_shared_alike(table, tmp_path):
    """The method of the packaged model, whose label names have no part in some episodes."""
    data = {"kind": "many", "folder": str(write_corpora(tmp_path / "data")), "held_out": ["held"], "pool_pieces": 120}
    linear = table | {"method": {"name": "linear", "size": 16, "hidden": 16, "longest": 4}, "data": data}
    linear["train"] = {**table["train"], "steps": 3, "average": 0.9}
    assert train_twice(linear, tmp_path / "shared") == [0, 0]
    alone = {**linear, "train": {**linear["train"], "batch": 2}}
    list(run_training(RunSettings.of(alone), tmp_path / "alone", Accelerator(cpu=True)))
    runs = (tmp_path / "shared", tmp_path / "alone")
    losses, wanted = ([line["loss"] for line in metrics(folder) if "loss" in line] for folder in runs)
    assert losses == pytest.approx(wanted, rel=1e-3)


def test_a_launched_run_ends_when_one_process_is_killed_and_continues_exactly(table, undisturbed, tmp_path):
    run, _ = undisturbed
    folder = tmp_path / "killed"
    process = launch(table, folder)
    file = folder / "metrics.jsonl"
    while process.poll() is None and not (file.is_file() and len(file.read_text(encoding="utf-8").splitlines()) > 1):
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()[1]
    ranks = children_of(process.pid)
    assert len(ranks) == 2
    os.kill(ranks[-1], signal.SIGKILL)
    process.communicate(timeout=120)  # the launcher ends the other process
    assert process.returncode != 0
    assert not (folder / "result.json").exists()
    assert train_twice(table, folder) == [0, 0]
    assert_alike(folder, run)


@pytest.mark.parametrize("killed", [0, 1])
def test_whichever_process_is_killed_the_other_one_ends_and_the_run_continues_exactly(
    table, undisturbed, tmp_path, killed
):
    run, _ = undisturbed
    folder = tmp_path / "killed"
    codes = train_twice(table, folder, killed)
    assert codes[killed] == -signal.SIGKILL
    assert codes[1 - killed] not in {0, None}
    assert not (folder / "result.json").exists()
    assert train_twice(table, folder) == [0, 0]
    assert_alike(folder, run)


def test_processes_that_do_not_see_the_same_folder_refuse_to_continue_a_run(table, tmp_path):
    assert train_twice(table, tmp_path / "run", killed=1)[1] == -signal.SIGKILL
    state = (tmp_path / "run" / "resume.safetensors").read_bytes()
    assert train_twice(table, tmp_path / "run", other=tmp_path / "elsewhere") == [1, 1]
    assert (tmp_path / "run" / "resume.safetensors").read_bytes() == state
    assert not (tmp_path / "elsewhere").exists()


def children_of(parent: int) -> list[int]:
    listing = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listing.splitlines()]
    return sorted(pid for pid, parent_pid in pairs if parent_pid == parent)
