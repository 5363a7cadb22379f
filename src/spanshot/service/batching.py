"""Tag the texts of many requests, for different taggers, in common batches of the one encoder they share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spanshot.linear_tagger import LinearTagger
from spanshot.service.errors import ServiceError, overloaded
from spanshot.tagger import ReadText, Tagger
from spanshot.types import Entity, ScoredSpan, Sentence

Results = list[list[Entity]]
"""The entities of each text of a request."""
MOST_ACTIVE = 32
"""Requests that share batches. More would all be slow, so the others wait for their turn."""
_FIRST_SPEED = 20_000.0
"""Characters a second, until the speed is known."""


@dataclass(eq=False)
class Work:
    """The texts of one request, and how much of them is tagged."""

    tagger: Tagger
    texts: Sequence[str]
    future: asyncio.Future[Results]
    size: int
    """Characters."""
    arrived: float = field(default_factory=time.monotonic)
    read: list[ReadText] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)
    spans: list[list[ScoredSpan]] = field(default_factory=list)
    started: bool = False

    def start(self) -> None:
        """Split the texts into sentences."""
        self.started = True
        self.read = [self.tagger.read(text) for text in self.texts]
        self.sentences = [sentence for read in self.read for sentence in read.sentences()]

    @property
    def is_done(self) -> bool:
        """Whether all sentences are tagged."""
        return self.started and len(self.spans) == len(self.sentences)

    def take(self, words: int) -> list[Sentence]:
        """Return the next sentences with about so many words, at least one."""
        taken: list[Sentence] = []
        for sentence in self.sentences[len(self.spans) :]:
            if taken and words < len(sentence):
                break
            taken.append(sentence)
            words -= len(sentence)
        return taken

    def results(self) -> Results:
        """Return the entities of each text."""
        spans = iter(self.spans)
        return [self.tagger.entities(read, [next(spans) for _ in read.windows]) for read in self.read]


def tag_together(jobs: Sequence[tuple[Tagger, Sequence[Sentence]]]) -> list[list[list[ScoredSpan]]]:
    """Return the spans in the sentences of each tagger. Taggers of one model are encoded together."""
    results: list[list[list[ScoredSpan]]] = [[] for _ in jobs]
    shared: dict[int, list[tuple[LinearTagger, int, int, Sentence]]] = {}
    for job, (tagger, sentences) in enumerate(jobs):
        linear = tagger.sentence_tagger
        if not isinstance(linear, LinearTagger):
            results[job] = linear(sentences) if sentences else []
            continue
        results[job] = [[] for _ in sentences]
        members = shared.setdefault(id(linear.learner.encoder), [])
        members.extend((linear, job, number, sentence) for number, sentence in enumerate(sentences))
    for members in shared.values():
        words = [sentence.words for *_, sentence in members]
        bounds = [linear.bounds(len(sentence)) for linear, _, _, sentence in members]
        encoder = members[0][0].learner.encoder
        for at, vectors in encoder.encode(words, bounds):
            linear, job, number, _ = members[at]
            results[job][number] = linear.decode(words[at], vectors)
    return results


Share = tuple[Work, list[Sentence]]
"""The sentences of a request that are part of a batch."""


def _spans_of(taken: Sequence[Share], failed: list[tuple[Work, Exception]]) -> list[list[list[ScoredSpan]]]:
    """Return the spans in the sentences of each request; requests that cannot be tagged are added to ``failed``."""
    try:
        return tag_together([(work.tagger, sentences) for work, sentences in taken])
    except Exception:
        spans_of: list[list[list[ScoredSpan]]] = []
        for work, sentences in taken:  # find the request that fails
            try:
                spans_of += tag_together([(work.tagger, sentences)])
            except Exception as problem:
                failed.append((work, problem))
                spans_of.append([])
        return spans_of


@dataclass
class BatchReport:
    """One batch, for the metrics."""

    taggers: int
    requests: int
    words: int
    seconds: float


class Batcher:
    """Tags what requests ask for, in one thread. Its queue is bounded, by characters and by the time that they take.

    Each batch holds the sentences of all requests that wait, an equal share of each, so that a short text does not
    wait until long ones are done.
    """

    def __init__(
        self,
        *,
        batch_words: int = 1024,
        batch_wait: float = 0.002,
        queue: int = 2_000_000,
        most_seconds: float = 10.0,
        report: Callable[[BatchReport], None] | None = None,
    ) -> None:
        self._batch_words = batch_words
        self._batch_wait = batch_wait
        self._room = queue
        self._most_seconds = most_seconds
        self._report = report
        self._changed = threading.Condition()
        self._arrived: deque[Work] = deque()
        self._queued = 0
        self._speed = _FIRST_SPEED
        self._closing = False
        self._last_requests = 1
        self._thread = threading.Thread(target=self._run, name="spanshot-batches", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """Characters that wait or are being tagged."""
        return self._queued

    @property
    def is_alive(self) -> bool:
        """Whether the thread that tags runs."""
        return self._thread.is_alive()

    def refuse_if_full(self, size: int = 1) -> None:
        """Raise an error with status 429 if there is no room for so many characters."""
        if self._closing:
            raise ServiceError(503, "shutting_down", "the service is shutting down", 1)
        seconds = self._queued / self._speed
        if self._queued and (self._queued + size > self._room or seconds > self._most_seconds):
            raise overloaded("too many texts wait to be tagged", seconds)

    async def tag(self, tagger: Tagger, texts: Sequence[str], seconds: float) -> Results:
        """Return the entities of texts. Raise an error if the queue is full or it takes longer than ``seconds``."""
        size = sum(map(len, texts)) + len(texts)
        self.refuse_if_full(size)
        work = Work(tagger, texts, asyncio.get_running_loop().create_future(), size)
        with self._changed:
            self._queued += size
            self._arrived.append(work)
            self._changed.notify()
        try:
            async with asyncio.timeout(seconds):
                return await work.future
        except TimeoutError:
            if not work.started or self._queued > work.size:
                raise overloaded(f"the texts waited for {seconds:g} seconds", seconds) from None
            message = f"tagging took longer than {seconds:g} seconds; send fewer or shorter texts"
            raise ServiceError(503, "timeout", message, 1) from None

    def close(self, seconds: float = 30.0) -> None:
        """Finish what is queued and stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        active: list[Work] = []
        while True:
            self._collect(active)
            if not active:
                return  # closing
            self._one_batch(active)

    def _collect(self, active: list[Work]) -> None:
        """Add the requests that arrived to the active ones; wait if there are none."""
        with self._changed:
            while not active and not self._arrived and not self._closing:
                self._changed.wait()
            # Clients that were served together ask again at about the same time.
            until = time.monotonic() + self._batch_wait
            while not active and len(self._arrived) < self._last_requests and not self._closing:
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            while self._arrived and len(active) < MOST_ACTIVE:
                active.append(self._arrived.popleft())

    def _one_batch(self, active: list[Work]) -> None:
        began = time.monotonic()
        self._finish(active, [work for work in active if work.future.cancelled()])
        failed: list[tuple[Work, Exception]] = []
        taken = self._take(active, failed)
        finished: list[tuple[Work, Results]] = []
        for (work, _), spans in zip(taken, _spans_of(taken, failed), strict=True):
            work.spans += spans
            if work.is_done:
                try:
                    finished.append((work, work.results()))
                except Exception as problem:
                    failed.append((work, problem))
        self._last_requests = len(taken)
        self._finish(active, [work for work, _ in (*finished, *failed)])
        # Requests that got their share wait behind those that did not.
        waiting = {id(work) for work, _ in taken}
        active.sort(key=lambda work: id(work) in waiting)
        self._deliver(finished, failed)
        seconds = time.monotonic() - began
        done = sum(work.size * len(sentences) / max(1, len(work.sentences)) for work, sentences in taken)
        if done and seconds > 0:
            self._speed += 0.2 * (done / seconds - self._speed)
        if self._report is not None:
            taggers = len({id(work.tagger) for work, _ in taken})
            words = sum(len(sentence) for _, sentences in taken for sentence in sentences)
            self._report(BatchReport(taggers, len(taken), words, seconds))

    def _take(self, active: Sequence[Work], failed: list[tuple[Work, Exception]]) -> list[Share]:
        """Return the next sentences of the active requests; those that cannot be read are added to ``failed``."""
        room = max(1, self._batch_words // max(1, len(active)))
        taken: list[Share] = []
        words = 0
        for work in active:
            if words >= self._batch_words:
                break
            try:
                if not work.started:
                    work.start()
            except Exception as problem:
                failed.append((work, problem))
                continue
            sentences = work.take(room)
            taken.append((work, sentences))
            words += sum(map(len, sentences))
        return taken

    def _finish(self, active: list[Work], works: Sequence[Work]) -> None:
        gone = set(map(id, works))
        active[:] = [work for work in active if id(work) not in gone]
        with self._changed:
            self._queued -= sum(work.size for work in works)

    def _deliver(self, finished: Sequence[tuple[Work, Results]], failed: Sequence[tuple[Work, Exception]]) -> None:
        """Hand results to their requests: one wake-up of the event loop."""

        def set_all() -> None:
            for work, results in finished:
                if not work.future.done():
                    work.future.set_result(results)
            for work, problem in failed:
                if not work.future.done():
                    work.future.set_exception(problem)

        works = [work for work, _ in (*finished, *failed)]
        if works and not (loop := works[0].future.get_loop()).is_closed():
            loop.call_soon_threadsafe(set_all)
