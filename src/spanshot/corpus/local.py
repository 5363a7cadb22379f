"""Run a job with processes on this machine. A worker that dies is replaced, and only its part is done again."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Lock, Thread

from spanshot.corpus.part import PartRecord
from spanshot.corpus.plan import Part
from spanshot.corpus.scan import InputFile, scan
from spanshot.corpus.settings import CorpusSettings
from spanshot.corpus.work import ONE_THREAD, Work
from spanshot.corpus.worker import part_line
from spanshot.errors import DataError
from spanshot.json_text import Fields, parse_json

log = logging.getLogger(__name__)

MOST_DEATHS = 5
"""Times that a worker may die with the same part, or in a row while it starts, before the part or the job fails."""
_SCANS = 8
"""Files that are scanned at the same time."""


def lost_part(part: Part) -> str:
    """Return the message for a part that was given up."""
    return (
        f"{part.file}, rows {part.start:,} to {part.end:,}: the worker died {MOST_DEATHS} times, perhaps for lack of "
        "memory; run the job again with fewer workers or shorter texts"
    )


class LocalRunner:
    """Runs a job on this machine."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def scan(self, names: Sequence[str], settings: CorpusSettings) -> list[InputFile]:
        """Scan files."""
        with ThreadPoolExecutor(_SCANS) as pool:
            return list(pool.map(lambda name: scan(name, settings), names))

    def run(self, work: Work, parts: Iterable[Part]) -> Iterator[PartRecord]:
        """Yield the record of each part when it is done, in any order."""
        crew = _Crew(work.packed(), parts)
        threads = [Thread(target=crew.drive, daemon=True) for _ in range(self.workers)]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            while running:
                try:
                    result = crew.results.get(timeout=0.5)  # Ctrl-C works on all platforms
                except Empty:
                    continue
                if isinstance(result, PartRecord):
                    yield result
                elif isinstance(result, Exception):
                    raise result
                else:
                    running -= 1
        finally:
            crew.stop()
            for thread in threads:
                thread.join()
        if crew.lost:
            raise DataError("; ".join(crew.lost))

    def close(self) -> None:
        """Do nothing: the workers end with each run."""


class _Crew:
    """The workers of a run. Each is driven by a thread of its own."""

    def __init__(self, content: bytes, parts: Iterable[Part]) -> None:
        self.results: Queue[PartRecord | Exception | None] = Queue()
        self.lost: list[str] = []
        """Parts that were given up."""
        self._content = content
        self._parts = iter(parts)
        self._lock = Lock()
        self._stopped = Event()
        self._processes: set[subprocess.Popen[bytes]] = set()

    def drive(self) -> None:
        """Start a worker, give it one part after the other, and replace it if it dies."""
        worker: subprocess.Popen[bytes] | None = None
        try:
            while (part := self._next()) is not None:
                deaths = 0
                while not self._stopped.is_set():
                    worker = worker or self._start()
                    record = self._tag(worker, part)
                    if record is not None:
                        self.results.put(record)
                        break
                    self._end(worker)
                    worker, deaths = None, deaths + 1
                    if not self._stopped.is_set():
                        log.info("a worker died with part %d, which is begun again", part.number)
                    if deaths == MOST_DEATHS:
                        self.lost.append(lost_part(part))
                        break
        except Exception as error:
            self.results.put(error)
        finally:
            if worker is not None:
                self._end(worker)
            self.results.put(None)

    def stop(self) -> None:
        """End all workers."""
        with self._lock:
            self._stopped.set()
            for process in self._processes:
                process.kill()

    def _next(self) -> Part | None:
        with self._lock:
            return None if self._stopped.is_set() else next(self._parts, None)

    def _start(self) -> subprocess.Popen[bytes]:
        search = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)  # workers find what this process finds
        environment = os.environ | ONE_THREAD | {"PYTHONPATH": search}
        for _ in range(MOST_DEATHS):
            with self._lock:
                if self._stopped.is_set():
                    raise DataError("stopped")
                worker = subprocess.Popen(
                    [sys.executable, "-c", "from spanshot.corpus.worker import main; main()"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment,
                )
                self._processes.add(worker)
            if self._answer(worker, b"%d\n%b" % (len(self._content), self._content)) is not None:
                return worker
            self._end(worker)
        raise DataError(f"the workers die when they start (exit code {worker.returncode})")

    def _tag(self, worker: subprocess.Popen[bytes], part: Part) -> PartRecord | None:
        """Let a worker tag a part; return None if it dies."""
        answer = self._answer(worker, part_line(part))
        return None if answer is None else PartRecord.of(answer.object("record"))

    def _answer(self, worker: subprocess.Popen[bytes], message: bytes) -> Fields | None:
        """Send a message and return the answer; None if the worker is dead."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(message)
            worker.stdin.flush()
            line = worker.stdout.readline()
        except OSError:
            return None
        if not line.endswith(b"\n"):
            return None
        answer = Fields.of(parse_json(line.decode()))
        if "error" in answer.record:
            raise DataError(answer.text("error"))
        if "crash" in answer.record:
            raise RuntimeError(f"a worker failed:\n{answer.text('crash')}")
        return answer

    def _end(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # a message that was not sent
                    stream.close()
        with self._lock:
            self._processes.discard(worker)
