"""A corpus job in a process of its own, which is killed, or whose workers are killed, at a chosen moment."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spanshot.corpus import CorpusSettings, tag_corpus
from spanshot.corpus.job_folder import ManifestWriter
from spanshot.corpus.part import PartRecord
from spanshot.errors import InputError
from spanshot.types import Entity
from stub_tagger import SUPPORT, NameTagger

ROWS = 512
SETTINGS = CorpusSettings(rows=ROWS)


def die() -> None:
    """Die without any cleaning up."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, repr=False)
class DyingTagger(NameTagger):
    """Kills its process once, at a moment: ``tag N`` at the N-th call, ``before`` or ``after`` it renames a file."""

    moment: str = ""
    marker: str = ""
    """A file that is created when the process dies; once it is there, no further process does."""
    seconds: float = 0.0
    """Time that each call takes."""
    calls: list[None] = field(default_factory=list)

    def pipe(self, texts: Iterable[str], batch_size: int = 32) -> Iterator[list[Entity]]:
        self.calls.append(None)
        time.sleep(self.seconds)
        kind, _, number = self.moment.partition(" ")
        if kind == "tag" and len(self.calls) == int(number):
            self._die()
        if kind in {"before", "after"} and len(self.calls) == 1:
            Path.replace = _around(Path.replace, self._die, first=kind == "before")  # type: ignore[method-assign]
        yield from super().pipe(texts, batch_size)

    def _die(self) -> None:
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return
        die()


def _around(function: Callable[..., Any], act: Callable[[], None], *, first: bool) -> Callable[..., Any]:
    def wrapped(*arguments: Any) -> Any:
        if first:
            act()
        result = function(*arguments)
        if not first:
            act()
        return result

    return wrapped


@dataclass(frozen=True, repr=False)
class DeadlyTagger(NameTagger):
    """Kills its process whenever a text contains the word deadly."""

    def pipe(self, texts: Iterable[str], batch_size: int = 32) -> Iterator[list[Entity]]:
        texts = list(texts)
        if any("deadly" in text for text in texts):
            die()
        yield from super().pipe(texts, batch_size)


@dataclass(frozen=True, repr=False)
class PickyTagger(NameTagger):
    """Fails at texts with a word."""

    word: str = "fails"

    def pipe(self, texts: Iterable[str], batch_size: int = 32) -> Iterator[list[Entity]]:
        texts = list(texts)
        if any(self.word in text for text in texts):
            raise InputError(f"{self.word!r} in a text")
        yield from super().pipe(texts, batch_size)


def main() -> None:
    """Run a job: inputs, output, the moment at which the driver dies, the one for a worker, marker, runner."""
    inputs, output, driver, worker, marker, seconds, runner = sys.argv[1:]
    kind, _, number = driver.partition(" ")
    count = 0

    def tick(*_: object) -> None:
        nonlocal count
        count += 1
        if count == int(number):
            die()

    if kind in {"unrecorded", "recorded"}:
        ManifestWriter.add = _around(ManifestWriter.add, tick, first=kind == "unrecorded")  # type: ignore[method-assign]
    if kind == "torn":
        add = ManifestWriter.add

        def torn(writer: ManifestWriter, record: PartRecord) -> None:
            add(writer, record)
            if count + 1 == int(number):
                path = Path(output, "manifest.jsonl")
                os.truncate(path, path.stat().st_size - 20)
            tick()

        ManifestWriter.add = torn  # type: ignore[method-assign]
    if kind == "rename":
        Path.replace = _around(Path.replace, tick, first=True)  # type: ignore[method-assign]
    tagger = DyingTagger(support=SUPPORT, moment=worker, marker=marker, seconds=float(seconds))
    tag_corpus(tagger, inputs, output, SETTINGS, workers=2, runner=runner)
