"""`spanshot reproduce` in a process of its own, which can be told when to be killed."""

from __future__ import annotations

from pathlib import Path

import torch

from killable import die
from spanshot.research.experiments.reproduce.catalogue import find_experiments
from spanshot.research.experiments.reproduce.jobs import Progress
from spanshot.research.experiments.reproduce.run import reproduce
from spanshot.research.experiments.reproduce.workspace import Workspace


def run(names: list[str], out: str, count: int = 0) -> None:
    """Run to the end, or until the ``count``-th message about progress."""
    torch.set_num_threads(1)
    left = count

    def begin(jobs: object):
        def watch(progress: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                die()

        return watch

    reproduce(find_experiments(names), Workspace("small", Path(out) / "data", Path(out)), 1, begin)


def run_one_job(names: list[str], out: str, records: str) -> None:
    """Run until the second job begins."""
    torch.set_num_threads(1)
    seen: set[str] = set()

    def watch(progress: Progress) -> None:
        seen.add(progress.job)
        if len(seen) == 2:
            die()

    workspace = Workspace("small", Path(out) / "data", Path(out))
    reproduce(find_experiments(names), workspace, 1, lambda jobs: watch, records=Path(records))
