"""Pools: sentences of one corpus, and several episodes that share them.

Encoding a sentence costs far more than fitting a head to it, so a training step encodes each sentence of a pool once
and learns several episodes from the same vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spanshot.types import Episode, Sentence, SupportSet


@dataclass(frozen=True, slots=True)
class PoolEpisode:
    """An episode, given by positions of sentences in a pool."""

    labels: tuple[str, ...]
    """The requested labels; each has an example in the support."""
    support: tuple[int, ...]
    query: tuple[int, ...]
    named: bool = True
    """Whether the method may read the labels' names."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Sentences that are encoded together, and the episodes learned from them."""

    sentences: tuple[Sentence, ...]
    """Spans of labels that ``names`` lacks are ignored."""
    names: Mapping[str, str]
    """The name of each label as the method reads it; some labels may occur in no sentence."""
    episodes: tuple[PoolEpisode, ...]
    informative: bool = True
    """Whether the names describe the labels."""
    corpus: str = ""

    def full_episodes(self) -> list[Episode]:
        """Return the episodes with their sentences; each marks its own labels only."""
        return [self._full(episode) for episode in self.episodes]

    def _full(self, episode: PoolEpisode) -> Episode:
        support, query = (
            tuple(self.sentences[number].with_labels(episode.labels) for number in numbers)
            for numbers in (episode.support, episode.query)
        )
        return Episode(SupportSet(episode.labels, support), query, self.corpus)
