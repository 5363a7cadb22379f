"""What every source of episodes can do, and what several of them share."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Protocol

from spanshot.errors import ConfigError, did_you_mean
from spanshot.types import Episode, Sentence, SupportSet

Metric = Literal["mean_f1", "micro_f1"]
SPLITS = ("train", "dev", "test")


class Source(Protocol):
    """Training episodes without end, fixed episodes to measure on, and the labelled text behind them."""

    metric: ClassVar[Metric]
    """What the corpus is reported by, and the best step chosen by."""

    def training(self) -> Callable[[random.Random], Episode]:
        """A function that draws a training episode."""
        ...

    def episodes(self, split: str) -> list[Episode]:
        """The fixed episodes of ``dev`` or ``test``."""
        ...

    def sentences(self) -> list[Sentence]:
        """The distinct training sentences."""
        ...


def distinct_sentences(episodes: Sequence[Episode]) -> list[Sentence]:
    """The sentences of the episodes, each once, in order."""
    found: dict[tuple[str, ...], Sentence] = {}
    for episode in episodes:
        for sentence in (*episode.support.sentences, *episode.query):
            found.setdefault(sentence.words, sentence)
    return list(found.values())


def with_labels(episode: Episode, labels: Sequence[str]) -> Episode:
    """The episode as if only these labels had been marked."""

    support = SupportSet(
        tuple(label for label in episode.support.labels if label in labels),
        tuple(sentence.with_labels(labels) for sentence in episode.support.sentences),
    )
    return replace(episode, support=support, query=tuple(s.with_labels(labels) for s in episode.query))


def known_split(split: str) -> str:
    """The split, if there is such a one."""
    if split not in SPLITS:
        raise ConfigError(f"split must be one of {', '.join(SPLITS)}; found {split!r}{did_you_mean(split, SPLITS)}")
    return split
