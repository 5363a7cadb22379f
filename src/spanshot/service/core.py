"""The service without HTTP: one model, the taggers on disk and in memory, the batcher, and a thread that learns."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from spanshot.errors import CheckpointError, SpanshotWarning
from spanshot.model import Model, embedded_model, load_model
from spanshot.service.batching import Batcher, Results
from spanshot.service.errors import ServiceError, overloaded, too_long, too_many
from spanshot.service.metrics import Metrics
from spanshot.service.settings import Settings
from spanshot.service.store import StoredTagger, TaggerStore
from spanshot.tagger import Tagger

Outcome = TypeVar("Outcome")
Key = tuple[str, int, tuple[int, int]]
"""The name, version and stamp of a tagger."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A tagger that was learned and saved."""

    stored: StoredTagger
    tagger: Tagger
    warnings: tuple[str, ...] = ()


class Service:
    """Everything that the routes use."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.metrics = Metrics(str(settings.metrics) if settings.metrics else None)
        self.store = TaggerStore(settings.folder, settings.limits.versions)
        if settings.model is None:
            self.model: Model = embedded_model(threads=settings.threads) if settings.threads else embedded_model()
        else:
            self.model = load_model(settings.model, threads=settings.threads)
        if self.model.method.name != "linear":
            raise CheckpointError(f"{settings.model}: the service needs an exported model; use `spanshot export`")
        self.batcher = Batcher(
            batch_words=settings.batch_words,
            batch_wait=settings.batch_wait,
            queue=settings.limits.queue,
            most_seconds=settings.limits.seconds / 3,
            report=self.metrics.batch,
        )
        self.closing = False
        self._learning = ThreadPoolExecutor(1, "spanshot-learning")
        self._loading = ThreadPoolExecutor(1, "spanshot-loading")
        self._changes = 0
        self._taggers: OrderedDict[Key, Tagger] = OrderedDict()
        self._loads: dict[Key, asyncio.Task[Tagger]] = {}

    def close(self) -> None:
        """Finish what is under way."""
        self.closing = True
        self._learning.shutdown()
        self.batcher.close()
        self._loading.shutdown()

    async def tagger(self, name: str, version: int | None = None) -> tuple[StoredTagger, Tagger]:
        """Return a tagger, from memory or from disk."""
        for _ in range(3):
            stored = self.store.find(name, version)
            key = (stored.name, stored.version, stored.stamp)
            if (tagger := self._taggers.get(key)) is not None:
                self._taggers.move_to_end(key)
                return stored, tagger
            task = self._loads.get(key)
            if task is None:
                task = self._loads[key] = asyncio.ensure_future(self._load(stored))
                task.add_done_callback(partial(self._loaded, key))
            try:
                return stored, await asyncio.shield(task)
            except CheckpointError:
                continue  # replaced or deleted meanwhile
        raise ServiceError(500, "damaged", f"the tagger {name!r} cannot be read")

    def _loaded(self, key: Key, task: asyncio.Task[Tagger]) -> None:
        del self._loads[key]
        if not task.cancelled():
            task.exception()  # the requests that wait for it are told

    async def _load(self, stored: StoredTagger) -> Tagger:
        tagger = await self.in_background(lambda: self.store.load(stored, self.model))
        self.keep(stored, tagger)
        return tagger

    def keep(self, stored: StoredTagger, tagger: Tagger) -> None:
        """Keep a tagger in memory; the one that was used longest ago is forgotten."""
        self._taggers[stored.name, stored.version, stored.stamp] = tagger
        while len(self._taggers) > self.settings.cached:
            self._taggers.popitem(last=False)
        self.metrics.cached.set(len(self._taggers))

    async def in_background(self, work: Callable[[], Outcome]) -> Outcome:
        """Run something that reads from disk, outside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._loading, work)

    async def change(self, change: Callable[[], tuple[StoredTagger, Tagger]]) -> Changed:
        """Run a change of a tagger in the thread that learns, and keep its result."""
        if self._changes >= self.limits.changes:
            raise overloaded("too many changes of taggers wait to be learned", self._changes)
        self._changes += 1
        work = asyncio.get_running_loop().run_in_executor(self._learning, self._timed, change)
        work.add_done_callback(self._change_ended)
        try:
            changed = await asyncio.wait_for(asyncio.shield(work), self.limits.seconds)
        except TimeoutError:
            message = f"the change takes longer than {self.limits.seconds} seconds; it may still be done"
            raise ServiceError(503, "timeout", message, self.limits.seconds) from None
        self.keep(changed.stored, changed.tagger)
        return changed

    def _change_ended(self, work: asyncio.Future[Changed]) -> None:
        self._changes -= 1
        if not work.cancelled():
            work.exception()  # a request that did not wait for it is not told

    def _timed(self, change: Callable[[], tuple[StoredTagger, Tagger]]) -> Changed:
        began = time.monotonic()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SpanshotWarning)
            stored, tagger = change()
        self.metrics.learn_seconds.observe(time.monotonic() - began)
        messages = (str(warning.message) for warning in caught if issubclass(warning.category, SpanshotWarning))
        return Changed(stored, tagger, tuple(dict.fromkeys(messages)))

    def check_texts(self, texts: Sequence[str]) -> None:
        """Raise an error if texts are beyond the limits."""
        if len(texts) > self.limits.texts:
            raise too_many("texts", self.limits.texts, len(texts))
        longest = max(map(len, texts), default=0)
        if longest > self.limits.text:
            raise too_long("text", self.limits.text, longest)

    async def tag(self, name: str, texts: Sequence[str], version: int | None = None) -> tuple[StoredTagger, Results]:
        """Tag texts with the newest version of a tagger, or another one."""
        self.check_texts(texts)
        stored, tagger = await self.tagger(name, version)
        results = await self.batcher.tag(tagger, texts, self.limits.seconds)
        self.metrics.texts.inc(len(texts))
        self.metrics.characters.inc(sum(map(len, texts)))
        return stored, results
