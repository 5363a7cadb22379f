"""The interface of a corpus, and helpers that several corpora share."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from spanshot.errors import ConfigError, did_you_mean
from spanshot.evaluation.report import Metric
from spanshot.research.pools import Pool
from spanshot.types import Episode, Sentence, SupportSet

SPLITS = ("train", "dev", "test")


class Source(Protocol):
    """Settings of a corpus, which gives training episodes, fixed dev and test episodes, and its training sentences."""

    metric: ClassVar[Metric]
    """The F1 that the corpus is reported by, and that selects the best step."""

    def training(self) -> Callable[[random.Random], Episode | Pool]:
        """Return a function that draws a training episode, or a pool of episodes that share sentences."""
        ...

    def episodes(self, split: str) -> list[Episode]:
        """Return the fixed episodes of a split."""
        ...

    def sentences(self) -> list[Sentence]:
        """Return the distinct training sentences."""
        ...


def distinct_sentences(episodes: Sequence[Episode]) -> list[Sentence]:
    """Return the sentences of the episodes in order, without duplicates."""
    sentences: dict[tuple[str, ...], Sentence] = {}
    for episode in episodes:
        for sentence in (*episode.support.sentences, *episode.query):
            sentences.setdefault(sentence.words, sentence)
    return list(sentences.values())


def with_labels(episode: Episode, labels: Sequence[str]) -> Episode:
    """Return the episode with only these labels marked."""
    support = SupportSet(
        tuple(label for label in episode.support.labels if label in labels),
        tuple(sentence.with_labels(labels) for sentence in episode.support.sentences),
    )
    return replace(episode, support=support, query=tuple(s.with_labels(labels) for s in episode.query))


def known_split(split: str) -> str:
    """Return the split; refuse unknown ones."""
    if split not in SPLITS:
        raise ConfigError(f"split must be one of {', '.join(SPLITS)}; found {split!r}{did_you_mean(split, SPLITS)}")
    return split


def check_probability(name: str, value: float) -> None:
    """Refuse a setting that is not a probability."""
    if not 0 <= value <= 1:
        raise ConfigError(f"{name} is a probability, in 0..1; found {value}")
