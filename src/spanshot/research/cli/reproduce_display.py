"""Show the progress of many jobs and the time remaining: a bar on a terminal, some lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from spanshot.cli.console import duration, percent
from spanshot.research.experiments.reproduce.jobs import Job, Progress, Watch
from spanshot.research.experiments.reproduce.time_left import TimeLeft

SECONDS_BETWEEN_LINES = 60.0
"""Minimum time between two lines of the same job, in seconds, if the output is not a terminal."""


class Display:
    """Shows the active jobs and an estimate of the time remaining."""

    def __init__(self, out: Console, processes: int, *, quiet: bool = False) -> None:
        self.out, self.processes, self.quiet = out, processes, quiet
        self._active: dict[str, Progress] = {}
        self._shown: dict[str, float] = {}
        self._time_left: TimeLeft | None = None
        self._live = Live(console=out, refresh_per_second=2, transient=True)

    def __enter__(self) -> Display:
        if self.out.is_terminal and not self.quiet:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, jobs: Sequence[Job]) -> Watch:
        """Show the number of jobs and return the callback for their progress."""
        self._time_left = time_left = TimeLeft(jobs, self.processes)
        if not self.quiet:
            ahead = (
                f", about {duration(time_left.seconds)} on an idle machine" if time_left.done < time_left.total else ""
            )
            self.out.print(f"{time_left.done} of {time_left.total} runs are finished{ahead}")

        def watch(progress: Progress) -> None:
            time_left.update(progress)
            if not self.quiet:
                self._show(progress, time_left)

        return watch

    def _show(self, progress: Progress, time_left: TimeLeft) -> None:
        finished = progress.share >= 1
        self._active[progress.job] = progress
        if finished:
            del self._active[progress.job]
        if self._live.is_started:
            self._live.update(self._table(time_left))
        now = time.monotonic()
        if finished or now - self._shown.get(progress.job, now - SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
            self._shown[progress.job] = now
            if finished or not self._live.is_started:
                summary = f"{time_left.done} of {time_left.total} runs, about {duration(time_left.seconds)} left"
                self.out.print(f"{_line(progress)}  ({summary})", soft_wrap=True)

    def _table(self, time_left: TimeLeft) -> Table:
        table = Table.grid()
        for progress in self._active.values():
            table.add_row(_line(progress))
        table.add_row(f"{time_left.done} of {time_left.total} runs finished, about {duration(time_left.seconds)} left")
        return table


def _line(progress: Progress) -> str:
    if progress.share >= 1:
        return f"{progress.job}: done"
    best = "" if progress.best_dev_f1 is None else f", best dev F1 {percent(progress.best_dev_f1)}"
    return f"{progress.job}: {progress.activity} {progress.done}/{progress.total}{best}"
