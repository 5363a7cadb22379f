"""The same text in another guise, so that a model meets more than the manners of its corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spanshot.types import Episode, Sentence, Span, SupportSet


def without_punctuation(sentence: Sentence) -> Sentence:
    """The words that hold a letter or digit, and the spans that still have one; all if there is none.

    >>> without_punctuation(Sentence(("Oslo", ",", "Norway", "."), (Span(0, 3, "place"), Span(3, 4, "mark"))))
    Sentence(words=('Oslo', 'Norway'), spans=(Span(start=0, end=2, label='place'),))
    """
    kept = [at for at, word in enumerate(sentence.words) if any(map(str.isalnum, word))]
    if not kept:
        return sentence
    spans = []
    for span in sentence.spans:
        inside = [new for new, old in enumerate(kept) if span.start <= old < span.end]
        if inside:
            spans.append(Span(inside[0], inside[-1] + 1, span.label))
    return Sentence(tuple(sentence.words[at] for at in kept), tuple(spans))


def perturbed(episode: Episode, change: Callable[[Sentence], Sentence]) -> Episode:
    """The episode with every sentence changed; labels that thereby lose all their examples are left out."""
    support = [change(sentence) for sentence in episode.support.sentences]
    left = {span.label for sentence in support for span in sentence.spans}
    labels = tuple(label for label in episode.support.labels if label in left)
    if not labels:
        return episode
    query = tuple(change(sentence).with_labels(left) for sentence in episode.query)
    return replace(episode, support=SupportSet(labels, tuple(support)), query=query)
