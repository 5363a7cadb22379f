"""The unit of work: a training run in a folder of its own, and the measurements that are taken from it.

Everything finished is recorded in the folder, so a job that is interrupted or repeated skips finished work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from spanshot.errors import DataError
from spanshot.files import write_text
from spanshot.formats.files import read_text
from spanshot.json_text import Fields, JsonObject, parse_json, to_json
from spanshot.research.training.events import Evaluated, Stepped
from spanshot.research.training.folder import BEST, RESULT, check_settings, is_finished
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings

DONE = "done"
"""The activity of a job that has nothing left to do."""
TRAINING_SHARE = 0.9
"""Share of a job's time that its training takes, for the estimate of the time remaining."""
MEASUREMENT = "measurement_"
"""Start of the names of files with measurements."""


@dataclass(frozen=True)
class Progress:
    """How far a job has come: the activity, its steps, and the share of the whole job that is done."""

    job: str
    activity: str
    done: int
    total: int
    share: float
    best_dev_f1: float | None = None


Watch = Callable[[Progress], None]
Count = Callable[[int, int], None]
"""Called with the number of items done and of all."""


class Measurement(Protocol):
    """Something to measure on a finished run, recorded as one JSON file in its folder."""

    @property
    def name(self) -> str:
        """Name of the file, without suffix."""
        ...

    def describe(self) -> JsonObject:
        """Return everything that the outcome depends on; another description is another measurement."""
        ...

    def measure(self, folder: Path, count: Count) -> JsonObject:
        """Take the measurement."""
        ...


@dataclass(frozen=True)
class Job:
    """A training run (if any), the measurements taken from it, and its place in the queue."""

    folder: Path
    settings: RunSettings | None = None
    measurements: tuple[Measurement, ...] = ()
    minutes: float = 1.0
    """Expected core-minutes."""
    rank: int = 0
    """Jobs of a lower rank run first."""
    alone: bool = False
    """Whether it runs after all others and beside none, because it measures time or reads their results."""
    needs_weights: bool = False
    """Whether another job reads its weights, which a run restored from a record lacks."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        trained = self.settings is None or is_finished(self.folder)
        if self.needs_weights and not (self.folder / BEST).is_dir():
            return False
        return trained and all(read_measurement(self.folder, item) is not None for item in self.measurements)

    def check(self) -> None:
        """Refuse a folder with a run of other settings."""
        if self.settings is not None:
            check_settings(self.settings, self.folder)

    def work(self, watch: Watch) -> None:
        """Train and measure, skipping finished work."""
        share = 0.0
        if self.settings is not None:
            if not (self.folder / BEST).is_dir():  # restored from a record, which has no weights
                (self.folder / RESULT).unlink(missing_ok=True)
            if not is_finished(self.folder):
                self._train(self.settings, watch)
            share = TRAINING_SHARE
        self.folder.mkdir(parents=True, exist_ok=True)
        for number, item in enumerate(self.measurements):
            if read_measurement(self.folder, item) is not None:
                continue
            write_measurement(self.folder, item, item.measure(self.folder, self._counter(number, share, watch)))
        watch(Progress(self.name, DONE, 1, 1, 1.0))

    def _counter(self, number: int, before: float, watch: Watch) -> Count:
        """Return a callback that reports the progress of a measurement."""
        each = (1 - before) / len(self.measurements)
        activity = f"measuring {self.measurements[number].name}"

        def count(done: int, total: int) -> None:
            share = before + each * (number + done / max(1, total))
            watch(Progress(self.name, activity, done, total, min(share, 0.999)))

        return count

    def _train(self, settings: RunSettings, watch: Watch) -> None:
        best: float | None = None
        whole = settings.train.steps + settings.pretrain.steps
        for event in run_training(settings, self.folder):
            if isinstance(event, Evaluated):
                best = max(best or 0.0, event.dev_f1)
            elif isinstance(event, Stepped):
                before = settings.pretrain.steps if event.phase == "train" else 0
                share = TRAINING_SHARE * (before + event.step) / max(1, whole)
                watch(Progress(self.name, event.phase, event.step, event.of, share, best))


def merged(jobs: Iterable[Job]) -> list[Job]:
    """Merge jobs on the same run, as several tables use it, and sort them by rank."""
    by_folder: dict[Path, Job] = {}
    for job in jobs:
        job_of_folder = by_folder.setdefault(job.folder, job)
        if job_of_folder is job:
            continue
        if job_of_folder.settings != job.settings:
            raise ValueError(f"two jobs with different settings share the folder {job.folder}")
        new = tuple(item for item in job.measurements if item not in job_of_folder.measurements)
        rank, minutes = min(job_of_folder.rank, job.rank), max(job_of_folder.minutes, job.minutes)
        by_folder[job.folder] = replace(
            job_of_folder,
            measurements=job_of_folder.measurements + new,
            rank=rank,
            minutes=minutes,
            alone=job_of_folder.alone or job.alone,
            needs_weights=job_of_folder.needs_weights or job.needs_weights,
        )
    return sorted(by_folder.values(), key=lambda job: (job.alone, job.rank))


# Records of measurements


def measurement_file(folder: Path, name: str) -> Path:
    """Return the file that a measurement is recorded in."""
    return folder / f"{MEASUREMENT}{name}.json"


def measured_names(folder: Path) -> list[str]:
    """Return the names of the measurements that are recorded in a folder."""
    return sorted(path.stem.removeprefix(MEASUREMENT) for path in folder.glob(f"{MEASUREMENT}*.json"))


def read_measurement(folder: Path, item: Measurement) -> JsonObject | None:
    """Return the record of a measurement; None if there is none, or if it was another measurement."""
    path = measurement_file(folder, item.name)
    if not path.is_file():
        return None
    try:
        record = Fields.of(parse_json(read_text(path)))
        same = record.value("measurement") == as_read(item.describe())
        return record.object("outcome").record if same else None
    except DataError:
        return None


def write_measurement(folder: Path, item: Measurement, outcome: JsonObject) -> None:
    """Record a measurement."""
    text = to_json({"measurement": item.describe(), "outcome": outcome}, indent=1)
    write_text(measurement_file(folder, item.name), [text, "\n"])


def as_read(record: JsonObject) -> JsonObject:
    """Return a record as it is read back from JSON, where tuples are lists."""
    value: JsonObject = json.loads(json.dumps(record))
    return value
