"""Sentences made of templates and names, for tests with and without torch."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from spanshot.types import Sentence, Span


def filled_template(
    rng: random.Random,
    labels: Sequence[str],
    templates: Sequence[str],
    names: Mapping[str, Sequence[str]],
    share_marked: float = 1.0,
) -> Sentence:
    """Fill each ``{}`` of a random template with a name of a random label; mark this share of the names."""
    words: list[str] = []
    spans = []
    for word in rng.choice(templates).split():
        if word != "{}":
            words.append(word)
            continue
        label = rng.choice(labels)
        name = rng.choice(names[label]).split()
        if share_marked == 1 or rng.random() < share_marked:
            spans.append(Span(len(words), len(words) + len(name), label))
        words += name
    return Sentence(tuple(words), tuple(spans))
