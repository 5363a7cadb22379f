"""How fast a method is: the time to learn a support set, and the time to tag a sentence once it is learned."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that it took to learn so many support sets, and to tag so many sentences.

    >>> Pace(supports=2, learning=0.5, sentences=10, tagging=1.0).to_dict()
    {'supports': 2, 'sentences': 10, 'seconds_to_learn': 0.25, 'seconds_per_sentence': 0.1}
    """

    supports: int = 0
    learning: float = 0.0
    sentences: int = 0
    tagging: float = 0.0

    @property
    def seconds_to_learn(self) -> float:
        """Time for one support set; 0 if there was none."""
        return self.learning / self.supports if self.supports else 0.0

    @property
    def seconds_per_sentence(self) -> float:
        """Time to tag one sentence; 0 if there was none."""
        return self.tagging / self.sentences if self.sentences else 0.0

    def to_dict(self) -> dict[str, float]:
        """The averages and what they are over, for JSON."""
        names = ("supports", "sentences", "seconds_to_learn", "seconds_per_sentence")
        return {name: getattr(self, name) for name in names}


class Stopwatch:
    """Adds up what goes on inside its ``with`` blocks."""

    def __init__(self) -> None:
        self.pace = Pace()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """A support set is learned inside."""
        started = time.perf_counter()
        yield
        past = self.pace
        spent = past.learning + time.perf_counter() - started
        self.pace = Pace(past.supports + 1, spent, past.sentences, past.tagging)

    @contextmanager
    def tagging(self, sentences: int) -> Iterator[None]:
        """So many sentences are tagged inside; 0 if it is another part of tagging those before."""
        started = time.perf_counter()
        yield
        past = self.pace
        spent = past.tagging + time.perf_counter() - started
        self.pace = Pace(past.supports, past.learning, past.sentences + sentences, spent)
