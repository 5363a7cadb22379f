"""Tag a corpus: plan the job, continue one that was interrupted, and record every part that is done."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from spanshot.corpus.inputs import find_files, stamp_of
from spanshot.corpus.job_folder import JobDescription, JobFolder, ManifestWriter
from spanshot.corpus.local import LocalRunner
from spanshot.corpus.part import PartRecord
from spanshot.corpus.plan import Part, check_formats, make_plan
from spanshot.corpus.scan import InputFile
from spanshot.corpus.settings import BLOCK, CorpusSettings
from spanshot.corpus.work import Work, tagger_digest
from spanshot.engine.threads import physical_cores
from spanshot.errors import ConfigError

if TYPE_CHECKING:
    from spanshot.tagger import Tagger

RUNNERS = ("local", "ray")
SAMPLES = 8
"""Blocks of rows that an estimate tags, spread over the job."""
Progress = Callable[[int, int, int], None]
"""Called with the rows done, the rows of them that were done in an earlier run, and the rows of the job."""


class Runner(Protocol):
    """Runs the parts of a job."""

    workers: int

    def scan(self, names: Sequence[str], settings: CorpusSettings) -> list[InputFile]:
        """Scan files."""

    def run(self, work: Work, parts: Sequence[Part]) -> Iterator[PartRecord]:
        """Yield the record of each part when it is done, in any order."""

    def close(self) -> None:
        """Release the workers."""


@dataclass(frozen=True)
class CorpusReport:
    """The result of a job."""

    parts: int
    rows: int
    """Rows that were tagged."""
    entities: int
    failed: int
    """Rows that could not be tagged."""
    seconds: float
    """Duration of this run."""
    rows_before: int
    """Rows, tagged or failed, that an earlier run had done."""


@dataclass(frozen=True)
class CorpusPlan:
    """What a job would do, and how long it would take."""

    files: int
    rows: int
    parts: int
    rows_done: int
    """Rows that an earlier run has done."""
    workers: int
    rows_per_second: float
    """Rows that one worker tags per second, measured on a sample; 0 if no rows are left."""
    seconds: float
    """Estimated duration of the rest of the job, with the number of workers, or of cores if these are fewer."""


def tag_corpus(
    tagger: Tagger | str | Path,
    inputs: str | Path | Iterable[str | Path],
    output: str | Path,
    settings: CorpusSettings | None = None,
    *,
    workers: int | None = None,
    runner: str = "local",
    address: str | None = None,
    progress: Progress | None = None,
) -> CorpusReport:
    """Tag a column of many files. Each row is written exactly once; an interrupted job continues where it stopped.

    Call it again with the same arguments to continue. Another tagger, other settings or changed inputs are refused.

    Args:
        tagger: A tagger, or the folder of one.
        inputs: Paths, URLs of fsspec or patterns of Parquet, JSON lines or CSV files, which may be compressed (gzip,
            zstd).
        output: A new or empty folder, or the one of an interrupted job.
        settings: Columns, formats and limits.
        workers: Worker processes, with one thread each. Default: the number of physical cores; on a cluster, of its
            CPUs. It may differ between the runs of a job, and so may the runner.
        runner: ``"local"`` for processes on this machine, ``"ray"`` for Ray Data.
        address: Address of a Ray cluster; implies ``runner="ray"``.
        progress: Called after each part with the rows done, those of them done in an earlier run, and all rows.
    """
    job = _Job.of(tagger, inputs, output, settings or CorpusSettings())
    with _runner(runner, workers, address) as crew:
        return job.run(crew, progress)


def plan_corpus(
    tagger: Tagger | str | Path,
    inputs: str | Path | Iterable[str | Path],
    output: str | Path,
    settings: CorpusSettings | None = None,
    *,
    workers: int | None = None,
    runner: str = "local",
    address: str | None = None,
) -> CorpusPlan:
    """Return what `tag_corpus` would do with the same arguments, and tag a sample to estimate the time.

    Nothing is written. The sample is tagged by one worker on this machine.
    """
    job = _Job.of(tagger, inputs, output, settings or CorpusSettings())
    with _runner(runner, workers, address) as crew:
        return job.plan(crew)


@contextmanager
def _runner(name: str, workers: int | None, address: str | None) -> Iterator[Runner]:
    if name not in RUNNERS:
        raise ConfigError(f"the runner must be one of {', '.join(RUNNERS)}; found {name!r}")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers must be at least 1; found {workers}")
    runner: Runner
    if name == "ray" or address is not None:
        from spanshot.corpus.ray_data import RayRunner

        runner = RayRunner(workers, address)
    else:
        runner = LocalRunner(workers or physical_cores())
    try:
        yield runner
    finally:
        runner.close()


@dataclass(frozen=True)
class _Job:
    """A job with checked settings."""

    tagger: Tagger
    digest: str
    names: list[str]
    settings: CorpusSettings
    folder: JobFolder

    @classmethod
    def of(
        cls,
        tagger: Tagger | str | Path,
        inputs: str | Path | Iterable[str | Path],
        output: str | Path,
        settings: CorpusSettings,
    ) -> _Job:
        """Check the arguments of a job and load the tagger."""
        names = find_files([inputs] if isinstance(inputs, str | Path) else inputs)
        settings = replace(settings, to=check_formats(names, settings))
        folder = JobFolder(Path(output).absolute())
        folder.check()
        if isinstance(tagger, str | Path):
            from spanshot.model import load

            tagger = load(tagger)
        return cls(tagger, tagger_digest(tagger), names, settings, folder)

    def run(self, runner: Runner, progress: Progress | None) -> CorpusReport:
        """Tag all parts that are not done yet."""
        began = time.monotonic()
        with self.folder.held():
            description = self._description(runner)
            if self.folder.description() is None:
                self.folder.begin(description)
            self.folder.make_folders()
            parts = make_plan(description.inputs, self.settings)
            done = self.folder.finished(parts)
            before, total = _rows(done.values()), sum(part.rows for part in parts)
            rows_done = before
            if progress:
                progress(before, before, total)
            todo = [part for part in parts if part.number not in done]
            manifest = ManifestWriter(self.folder, description)
            try:
                for record in runner.run(Work(self.tagger, self.settings, self.folder.path), todo) if todo else ():
                    if record.part in done:  # a worker that was taken for dead
                        continue
                    manifest.add(record)
                    done[record.part] = record
                    rows_done += record.end - record.start
                    if progress:
                        progress(rows_done, before, total)
            finally:
                manifest.close()
        counts = [(record.rows, record.entities, record.failed) for record in done.values()]
        rows, entities, failed = map(sum, zip(*counts, strict=True)) if counts else (0, 0, 0)
        return CorpusReport(len(parts), rows, entities, failed, time.monotonic() - began, before)

    def plan(self, runner: Runner) -> CorpusPlan:
        """Return the plan, with an estimate from a sample."""
        parts = make_plan(self._description(runner).inputs, self.settings)
        done = self.folder.finished(parts)
        todo = [part for part in parts if part.number not in done]
        rows, before = sum(part.rows for part in parts), _rows(done.values())
        speed = self._speed(todo)
        busy = min(runner.workers, physical_cores()) if isinstance(runner, LocalRunner) else runner.workers
        seconds = (rows - before) / speed / busy if speed else 0.0
        return CorpusPlan(len(self.names), rows, len(parts), before, runner.workers, speed, seconds)

    def _speed(self, parts: Sequence[Part]) -> float:
        """Tag some blocks of rows; return the rows per second of one worker, or 0 if there are no rows."""
        step = max(1, len(parts) // SAMPLES)
        samples = [replace(part, end=min(part.end, part.start + BLOCK)) for part in parts[::step][:SAMPLES]]
        if not samples:
            return 0.0
        with tempfile.TemporaryDirectory() as name:
            folder = JobFolder(Path(name))
            folder.make_folders()
            warm_up = samples[:1]
            records = list(LocalRunner(1).run(Work(self.tagger, self.settings, folder.path), warm_up + samples))[1:]
        return _rows(records) / max(1e-3, sum(record.seconds for record in records))

    def _description(self, runner: Runner) -> JobDescription:
        """Describe the job. If the folder has a job already, check that it is the same one."""
        before = self.folder.description()
        if before is None:
            return JobDescription(self.digest, self.settings, runner.scan(self.names, self.settings))
        self._check_same(before)
        stamps = [stamp_of(file.name) for file in before.inputs]
        same = [bool(stamp) and stamp == file.stamp for stamp, file in zip(stamps, before.inputs, strict=True)]
        suspects = [file for file, unchanged in zip(before.inputs, same, strict=True) if not unchanged]
        again = {file.name: file for file in runner.scan([file.name for file in suspects], self.settings)}
        for file in suspects:
            if again[file.name].sha256 != file.sha256:
                raise self._refused(f"the input {file.name} has changed")
        return replace(before, inputs=[again.get(file.name, file) for file in before.inputs])

    def _check_same(self, before: JobDescription) -> None:
        if before.tagger != self.digest:
            raise self._refused("the tagger is another one")
        if before.settings != self.settings:
            old, new = vars(before.settings), vars(self.settings)
            changes = [f"{name} was {old[name]!r} and is {new[name]!r}" for name in old if old[name] != new[name]]
            raise self._refused(f"other settings: {', '.join(changes)}")
        names = [file.name for file in before.inputs]
        if names != self.names:
            missing, added = sorted(set(names) - set(self.names)), sorted(set(self.names) - set(names))
            change = f"{missing[0]} is missing" if missing else f"{added[0]} is new" if added else "another order"
            raise self._refused(f"other input files: {change}")

    def _refused(self, problem: str) -> ConfigError:
        return ConfigError(
            f"{self.folder.path}: cannot continue this job: {problem}; restore it, or name another output folder"
        )


def _rows(records: Iterable[PartRecord]) -> int:
    return sum(record.rows + record.failed for record in records)
