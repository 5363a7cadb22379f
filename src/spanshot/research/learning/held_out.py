"""A support set as small episodes of its own: some sentences are held out, the others teach."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from spanshot.examples.parts import parts_of, same_words
from spanshot.types import Episode, SupportSet


def held_out(support: SupportSet, most: int = 0) -> Iterator[Episode]:
    """An episode for each sentence, or for at most so many groups of them, as query; the rest is its support.

    A label that only held-out sentences have is not marked in their query: the rest cannot teach it. Sentences of the
    same words are held out together; episodes without any label left are not given.
    """
    for part in parts_of(support.sentences, most):
        if episode := _without(support, part):
            yield episode


def held_out_at_random(support: SupportSet, share: float, rng: random.Random, tries: int = 20) -> Episode | None:
    """An episode with a share of the sentences as query, at least one of which has a span that the rest teaches.

    None if no such episode is found.
    """
    groups = same_words(support.sentences)
    for _ in range(tries):
        some = rng.sample(groups, max(1, round(share * len(groups))))
        episode = _without(support, sorted(number for group in some for number in group))
        if episode and any(sentence.spans for sentence in episode.query):
            return episode
    return None


def _without(support: SupportSet, part: Sequence[int]) -> Episode | None:
    """The episode with these sentences as query; None if the rest has no label."""
    rest = [sentence for number, sentence in enumerate(support.sentences) if number not in part]
    if not any(sentence.spans for sentence in rest):
        return None
    shown = SupportSet.of(rest)
    return Episode(shown, tuple(support.sentences[number].with_labels(shown.labels) for number in part))
