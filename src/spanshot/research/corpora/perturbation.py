"""Change the text of training episodes, so that a model sees more than the style of its corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spanshot.types import Episode, Sentence, Span, SupportSet


def without_punctuation(sentence: Sentence) -> Sentence:
    """Remove words without a letter or digit, and spans of such words only; keep a sentence that has no other words.

    >>> without_punctuation(Sentence(("Oslo", ",", "Norway", "."), (Span(0, 3, "place"), Span(3, 4, "mark"))))
    Sentence(words=('Oslo', 'Norway'), spans=(Span(start=0, end=2, label='place'),))
    """
    positions = [at for at, word in enumerate(sentence.words) if any(map(str.isalnum, word))]
    if not positions:
        return sentence
    spans = []
    for span in sentence.spans:
        inside = [new for new, old in enumerate(positions) if span.start <= old < span.end]
        if inside:
            spans.append(Span(inside[0], inside[-1] + 1, span.label))
    return Sentence(tuple(sentence.words[at] for at in positions), tuple(spans))


def perturbed(episode: Episode, change: Callable[[Sentence], Sentence]) -> Episode:
    """Change every sentence of the episode. Labels that lose all their examples are dropped."""
    support = [change(sentence) for sentence in episode.support.sentences]
    labels_left = {span.label for sentence in support for span in sentence.spans}
    labels = tuple(label for label in episode.support.labels if label in labels_left)
    if not labels:
        return episode
    query = tuple(change(sentence).with_labels(labels_left) for sentence in episode.query)
    return replace(episode, support=SupportSet(labels, tuple(support)), query=query)
