"""Episodes drawn by worker processes: the same as without workers, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

from odd_sources import FailingSource, MissingSource, ProcessSource
from spanshot.errors import ConfigError, SpanshotError
from spanshot.research.checkpoint import load
from spanshot.research.corpora.episode_files import EpisodeFiles, write_episodes
from spanshot.research.corpora.many import ManyCorpora
from spanshot.research.training.drawing import EpisodeWorkers, in_process
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings
from tiny import toy_episodes, write_corpora, write_tiny_encoder

KEYS = [f"1/{step}/0/{number}" for step in range(6) for number in range(2)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("episodes")
    for seed, split in enumerate(("train", "dev")):
        write_episodes(folder / f"{split}.jsonl", toy_episodes(5, seed=seed))
    write_corpora(folder / "many")
    write_tiny_encoder(folder / "encoder")
    return folder


@pytest.fixture
def start():
    """Starts workers and ends them after the test."""
    started: list[EpisodeWorkers] = []

    def workers(source, count: int) -> EpisodeWorkers:
        started.append(EpisodeWorkers(source, count))
        return started[-1]

    yield workers
    for each in started:
        each.close()


def pids(workers: EpisodeWorkers) -> list[int]:
    return [worker.process.pid for worker in workers._workers]


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    listing = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listing.stdout.strip()[:1] not in {"", "Z"}


# The items


@pytest.mark.parametrize("count", [1, 2, 3])
def test_workers_draw_the_episodes_that_one_process_draws(folder, start, count):
    source = ManyCorpora(folder=str(folder / "many"), held_out=("held",), pool_pieces=120)
    expected = list(in_process(source.training())(KEYS))
    assert len({repr(item) for item in expected}) > 5
    workers = start(source, count)
    workers.wait()
    assert list(workers(KEYS)) == expected
    assert list(workers(KEYS[5:])) == expected[5:]


def test_items_that_a_caller_did_not_fetch_are_not_mistaken_for_later_ones(folder, start):
    source = EpisodeFiles(str(folder / "train.jsonl"), str(folder / "dev.jsonl"))
    workers = start(source, 2)
    workers.wait()
    list(islice(workers(KEYS), 3))
    later = [f"2/{step}/0/0" for step in range(4)]
    assert list(workers(later)) == list(in_process(source.training())(later))


def test_items_come_from_all_workers_and_none_of_them_loads_torch(start):
    workers = start(ProcessSource(), 2)
    workers.wait()
    facts = [drawn.item for drawn in workers(KEYS)]
    assert {pid for pid, _ in facts} == set(pids(workers))
    assert {loaded for _, loaded in facts} == {False}


# Failures


def test_an_error_of_the_corpus_is_reported_before_training(start):
    with pytest.raises(SpanshotError, match=r"^corpus\.txt:3: found 3 columns; expected 2$"):
        start(MissingSource(), 2).wait()


def test_an_unexpected_error_is_reported_with_its_traceback_after_the_items_before_it(start):
    workers = start(FailingSource(3), 1)
    workers.wait()
    items = workers(KEYS)
    assert len(list(islice(items, 3))) == 3
    with pytest.raises(RuntimeError, match=r"(?s)odd_sources\.py.*1 // .*ZeroDivisionError"):
        next(items)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_worker_that_was_killed_ends_the_run_with_one_line(start):
    workers = start(ProcessSource(), 2)
    workers.wait()
    os.kill(pids(workers)[1], signal.SIGKILL)
    with pytest.raises(SpanshotError, match=r"ended unexpectedly \(exit code -9\).*train\.workers"):
        list(workers(KEYS))


def test_closing_ends_all_workers_even_with_items_that_nobody_fetched(start):
    workers = start(ProcessSource(), 2)
    workers.wait()
    next(workers(KEYS))
    processes = [worker.process for worker in workers._workers]
    workers.close()
    assert [process.exitcode for process in processes] == [0, 0]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_no_worker_survives_a_main_process_that_is_killed(folder):
    """Also those that are about to write an item larger than the buffer of a pipe."""
    script = (
        "import sys, time\n"
        "from spanshot.research.corpora.many import ManyCorpora\n"
        "from spanshot.research.training.drawing import EpisodeWorkers\n"
        "workers = EpisodeWorkers(ManyCorpora(folder=sys.argv[1], held_out=('held',), pool_pieces=100000), 2)\n"
        "workers.wait()\n"
        "items = workers(str(n) for n in range(100))\n"
        "next(items)\n"
        "print(*[worker.process.pid for worker in workers._workers], flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(folder / "many")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    main = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert main.stdout is not None
    workers = [int(pid) for pid in main.stdout.readline().split()]
    assert len(workers) == 2
    assert all(map(is_running, workers))
    main.kill()
    main.wait()
    deadline = time.monotonic() + 60
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


# Training


def settings_of(folder: Path, **train: object) -> RunSettings:
    return RunSettings.of(
        {
            "method": {"name": "esd", "size": 8, "longest": 3},
            "data": {"kind": "episodes", "train": str(folder / "train.jsonl"), "dev": str(folder / "dev.jsonl")},
            "encoder": {"name": str(folder / "encoder")},
            "train": {"steps": 4, "batch": 2, "evaluate_every": 4, "save_every": 1, "encoder_rate": 1e-3, **train},
        }
    )


@pytest.fixture(scope="module")
def without_workers(folder) -> dict[str, torch.Tensor]:
    list(run_training(settings_of(folder), folder / "run", Accelerator(cpu=True)))
    return load(folder / "run").method.state_dict()


def assert_same_weights(run: Path, wanted: dict[str, torch.Tensor]) -> None:
    weights = load(run).method.state_dict()
    assert weights.keys() == wanted.keys()
    assert [name for name in wanted if not torch.equal(weights[name], wanted[name])] == []


@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_workers_does_not_change_the_weights(folder, without_workers, tmp_path, count):
    list(run_training(settings_of(folder, workers=count), tmp_path / "run", Accelerator(cpu=True)))
    assert_same_weights(tmp_path / "run", without_workers)


def test_a_run_is_resumed_exactly_with_another_number_of_workers(folder, without_workers, tmp_path):
    events = run_training(settings_of(folder, workers=2), tmp_path / "run", Accelerator(cpu=True))
    list(islice(events, 3))
    events.close()
    list(run_training(settings_of(folder, workers=1), tmp_path / "run", Accelerator(cpu=True)))
    assert_same_weights(tmp_path / "run", without_workers)


def test_a_missing_corpus_is_an_error_before_the_first_step_with_workers_too(folder, tmp_path):
    settings = settings_of(folder, workers=1)
    moved = RunSettings.of(settings.to_table() | {"data": {"kind": "episodes", "train": "none", "dev": "none"}})
    with pytest.raises(SpanshotError, match="none"):
        run_training(moved, tmp_path / "run", Accelerator(cpu=True))


@pytest.mark.parametrize("change", [{"workers": -1}, {"precision": "half"}])
def test_impossible_settings_are_refused(folder, change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        settings_of(folder, **change)
