"""A training run in a process of its own, which can be told at which moment to be killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import torch

from spanshot.files import replacing
from spanshot.research import checkpoint
from spanshot.research.training import state as resume
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


def _within_a_write_of_weights(clock: _Clock) -> None:
    whole_bytes, whole_file = resume.write_bytes, checkpoint.save_file

    def write_bytes(path: Path, content: bytes) -> None:
        clock.left -= 1
        if clock.left:
            whole_bytes(path, content)
            return
        with replacing(path, "wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            die()

    def save_file(tensors: Any, path: Path, **options: Any) -> None:
        whole_file(tensors, path, **options)
        clock.left -= 1
        if not clock.left:
            whole = Path(path).read_bytes()
            Path(path).write_bytes(whole[: len(whole) // 2])
            die()

    resume.write_bytes, checkpoint.save_file = write_bytes, save_file


_MOMENTS = {
    "": lambda clock: None,
    "event": lambda clock: None,
    "before a rename": lambda clock: _around_renames(clock, before=True),
    "after a rename": lambda clock: _around_renames(clock, before=False),
    "within a write": _within_a_write_of_weights,
}
