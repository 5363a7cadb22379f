"""A training run in a process of its own, which can be told at which moment to be killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import torch

from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings


def train(table: dict[str, Any], folder: str, moment: str = "", count: int = 0) -> None:
    """Run to the end, or until ``moment`` comes for the ``count``-th time."""
    torch.set_num_threads(1)
    clock = _Clock(count)
    _MOMENTS[moment](clock)
    for _ in run_training(RunSettings.of(table), Path(folder)):
        if moment == "event":
            clock.tick()


class _Clock:
    def __init__(self, count: int) -> None:
        self.left = count

    def tick(self) -> None:
        self.left -= 1
        if not self.left:
            die()


def die() -> None:
    """As the kernel would have it: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def _around_renames(clock: _Clock, *, before: bool) -> None:
    def patched(original: Any) -> Any:
        def rename(self: Path, target: Path) -> Path:
            if before:
                clock.tick()
            moved = original(self, target)
            if not before:
                clock.tick()
            return moved

        return rename

    Path.rename, Path.replace = patched(Path.rename), patched(Path.replace)  # type: ignore[method-assign]


def _within_a_write(clock: _Clock) -> None:
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        flush(descriptor)
        clock.left -= 1
        if not clock.left:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            die()

    os.fsync = fsync


_MOMENTS = {
    "": lambda clock: None,
    "event": lambda clock: None,
    "before a rename": lambda clock: _around_renames(clock, before=True),
    "after a rename": lambda clock: _around_renames(clock, before=False),
    "within a write": _within_a_write,
}
