"""Measure how long a method takes to learn a support set and to tag a sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds spent on learning support sets and on tagging sentences.

    >>> Pace(supports=2, learning=0.5, sentences=10, tagging=1.0).to_dict()
    {'supports': 2, 'sentences': 10, 'seconds_to_learn': 0.25, 'seconds_per_sentence': 0.1}
    """

    supports: int = 0
    learning: float = 0.0
    sentences: int = 0
    tagging: float = 0.0

    @property
    def seconds_to_learn(self) -> float:
        """Mean time to learn a support set; 0 without any."""
        return self.learning / self.supports if self.supports else 0.0

    @property
    def seconds_per_sentence(self) -> float:
        """Mean time to tag a sentence; 0 without any."""
        return self.tagging / self.sentences if self.sentences else 0.0

    def to_dict(self) -> dict[str, float]:
        """Return the averages and the numbers of items, for JSON."""
        names = ("supports", "sentences", "seconds_to_learn", "seconds_per_sentence")
        return {name: getattr(self, name) for name in names}


class Stopwatch:
    """Adds up the time spent inside its ``with`` blocks."""

    def __init__(self) -> None:
        self.pace = Pace()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Measure the learning of one support set."""
        started = time.perf_counter()
        yield
        before = self.pace
        spent = before.learning + time.perf_counter() - started
        self.pace = Pace(before.supports + 1, spent, before.sentences, before.tagging)

    @contextmanager
    def tagging(self, sentences: int) -> Iterator[None]:
        """Measure the tagging of ``sentences`` sentences; 0 for another part of tagging the previous ones."""
        started = time.perf_counter()
        yield
        before = self.pace
        spent = before.tagging + time.perf_counter() - started
        self.pace = Pace(before.supports, before.learning, before.sentences + sentences, spent)
