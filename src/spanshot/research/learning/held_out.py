"""Draw small episodes from a support set: some sentences are held out as query, the rest is the support."""

from __future__ import annotations

import random

from spanshot.examples.parts import same_words
from spanshot.types import Episode, SupportSet


def held_out_at_random(support: SupportSet, share: float, rng: random.Random, tries: int = 20) -> Episode | None:
    """Return an episode with a random share of the sentences as query.

    At least one query sentence has a span that the rest can teach; a label that only held-out sentences have is not
    marked. Sentences with the same words are held out together. None if no such episode is found.
    """
    groups = same_words(support.sentences)
    for _ in range(tries):
        drawn = rng.sample(groups, max(1, round(share * len(groups))))
        numbers = sorted(number for group in drawn for number in group)
        remaining = [sentence for number, sentence in enumerate(support.sentences) if number not in numbers]
        if any(sentence.spans for sentence in remaining):
            taught = SupportSet.of(remaining)
            query = tuple(support.sentences[number].with_labels(taught.labels) for number in numbers)
            if any(sentence.spans for sentence in query):
                return Episode(taught, query)
    return None
