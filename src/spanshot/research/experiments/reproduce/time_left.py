"""Estimate the time that the remaining jobs take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from spanshot.research.experiments.reproduce.jobs import Job, Progress


class TimeLeft:
    """Compares the expected minutes of jobs with the time that they take.

    The estimate starts from the expected core-minutes, and follows the pace of this sitting once there is one.
    """

    def __init__(self, jobs: Sequence[Job], processes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._processes = clock, processes
        self._minutes = {job.name: job.minutes for job in jobs if not job.is_done}
        self._shares: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._since = clock()
        self.total = len(jobs)

    @property
    def done(self) -> int:
        """Number of finished jobs, including those finished before."""
        return self.total - len(self._minutes) + sum(share >= 1 for share in self._shares.values())

    def update(self, progress: Progress) -> None:
        """Take note of a job's progress."""
        self._first.setdefault(progress.job, progress.share)
        self._shares[progress.job] = max(progress.share, self._shares.get(progress.job, 0.0))

    @property
    def seconds(self) -> float:
        """Estimated seconds until all jobs are done."""
        minutes_left = sum(minutes * (1 - self._shares.get(name, 0.0)) for name, minutes in self._minutes.items())
        minutes_done = sum(self._minutes[name] * (share - self._first[name]) for name, share in self._shares.items())
        expected = 60.0 / self._processes  # seconds per core-minute
        elapsed = self._clock() - self._since
        return minutes_left * (elapsed / minutes_done if minutes_done > 0.05 else expected)
