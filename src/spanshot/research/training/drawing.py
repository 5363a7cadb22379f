"""Draw the items of training steps: in this process, or in worker processes ahead of time.

Everything random about an item follows from its key, so that it does not matter which process draws it.
"""

from __future__ import annotations

import copyreg
import io
import multiprocessing
import pickle
import random
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from multiprocessing.connection import Connection
from queue import SimpleQueue

from spanshot.errors import SpanshotError
from spanshot.research.corpora.source import Source
from spanshot.types import Sentence, Span

AHEAD = 4
"""Items that each worker is asked for in advance."""
SECONDS_TO_END = 5.0
"""Time for a worker to end by itself before it is terminated."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An item (an episode, a pool, or a batch of pretraining) and the seed for dropout."""

    item: object
    seed: int


Draw = Callable[[random.Random], object]
Draws = Callable[[Iterable[str]], Iterator[Drawn]]
"""Yields the items of keys, in their order."""


def drawn(draw: Draw, key: str) -> Drawn:
    """Draw the item of a key."""
    rng = random.Random(key)
    return Drawn(draw(rng), rng.getrandbits(63))


def in_process(draw: Draw) -> Draws:
    """Draw each item in this process when it is needed."""
    return lambda keys: (drawn(draw, key) for key in keys)


class EpisodeWorkers:
    """Processes that draw the training episodes of a corpus in advance.

    Each reads the corpus itself, without torch. They end with this process, also if it is killed: a worker stops when
    its connection is closed. A thread per worker receives the items, so that they lie ready when a step needs them.
    """

    def __init__(self, source: Source, count: int) -> None:
        """Start the workers; `wait` returns once they have read the corpus."""
        context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, source), name="spanshot episodes", daemon=True)
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, ours))

    def wait(self) -> None:
        """Wait until all workers have read the corpus; raise the error of one that cannot."""
        for worker in self._workers:
            worker.receive("")

    def __call__(self, keys: Iterable[str]) -> Iterator[Drawn]:
        """Yield the items of keys, in their order."""
        requests = zip(cycle(self._workers), keys, strict=False)
        pending: deque[tuple[_Worker, str]] = deque()
        for worker, key in islice(requests, AHEAD * len(self._workers)):
            worker.request(key)
            pending.append((worker, key))
        while pending:
            worker, key = pending.popleft()
            item = worker.receive(key)
            for next_worker, next_key in islice(requests, 1):
                next_worker.request(next_key)
                pending.append((next_worker, next_key))
            assert item is not None
            yield item

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.request(None)
        for worker in self._workers:
            worker.close()


class _Worker:
    """A process, this end of its connection, and the replies received so far."""

    def __init__(self, process: multiprocessing.context.SpawnProcess, connection: Connection) -> None:
        self.process, self._connection = process, connection
        self._replies: SimpleQueue[tuple[str, Drawn | None] | _Failure | None] = SimpleQueue()
        self._receiver = threading.Thread(target=self._receive_all, daemon=True)
        self._receiver.start()

    def request(self, key: str | None) -> None:
        """Ask for an item; None ends the worker."""
        with suppress(OSError):  # it has ended already, which `receive` reports
            self._connection.send(key)

    def receive(self, key: str) -> Drawn | None:
        """Return the item of a key. Items of other keys, requested before a caller stopped early, are dropped."""
        while True:
            match self._replies.get():
                case None:
                    self._replies.put(None)
                    self.process.join(SECONDS_TO_END)
                    raise SpanshotError(
                        f"a worker that draws episodes ended unexpectedly (exit code {self.process.exitcode}), perhaps "
                        "for lack of memory; run the same command again to resume, with fewer workers (train.workers)"
                    )
                case _Failure() as failure:
                    raise failure.error()
                case (answered, item) if answered == key:
                    return item

    def close(self) -> None:
        self.process.join(SECONDS_TO_END)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()
        self._receiver.join()
        self._connection.close()

    def _receive_all(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._replies.put(pickle.loads(self._connection.recv_bytes()))
        self._replies.put(None)


@dataclass(frozen=True)
class _Failure:
    """An error in a worker."""

    message: str
    trace: str
    by_user: bool
    """Whether it is one that users can fix."""

    def error(self) -> Exception:
        if self.by_user:
            return SpanshotError(self.message)
        return RuntimeError(f"a worker that draws episodes failed:\n{self.trace}")


def _work(connection: Connection, source: Source) -> None:
    """Answer requests until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the main one closes the connection
    with suppress(OSError):  # the main process has ended
        for reply in _replies(connection, source):
            connection.send_bytes(packed(reply))


def _replies(connection: Connection, source: Source) -> Iterator[tuple[str, Drawn | None] | _Failure]:
    try:
        draw = source.training()
        yield "", None
        while True:
            try:
                key = connection.recv()
            except (EOFError, OSError):
                return
            if key is None:
                return
            yield key, drawn(draw, key)
    except Exception as error:
        yield _Failure(str(error), traceback.format_exc(), isinstance(error, SpanshotError))


# Sentences between processes: Python's own way to read frozen dataclasses with slots takes ten times as long.


def _reduced(value: Sentence | Span) -> tuple[Callable[..., object], tuple[object, ...]]:
    kind = type(value)
    return _restored, (kind, *(getattr(value, name) for name in kind.__slots__))


def _restored(kind: type, *values: object) -> object:
    """Return a value that was checked when it was made."""
    restored: object = object.__new__(kind)
    for name, value in zip(kind.__slots__, values, strict=True):  # type: ignore[attr-defined]
        object.__setattr__(restored, name, value)
    return restored


class _Pickler(pickle.Pickler):
    dispatch_table = copyreg.dispatch_table | {Sentence: _reduced, Span: _reduced}


def packed(reply: object) -> bytes:
    """Return a reply as bytes that `pickle.loads` reads. They pass only between a process and its workers."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(reply)
    return buffer.getvalue()
