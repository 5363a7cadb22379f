"""A support set as small episodes of its own: some sentences are held out, the others teach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spanshot.types import Episode, Sentence, SupportSet


def held_out(support: SupportSet, most: int = 0) -> Iterator[Episode]:
    """An episode for each sentence, or for at most so many groups of them, as query; the rest is its support.

    A label that only held-out sentences have is not marked in their query: the rest cannot teach it. Sentences of the
    same words are held out together; episodes without any label left are not given.
    """
    for part in parts_of(support.sentences, most):
        rest = [sentence for number, sentence in enumerate(support.sentences) if number not in part]
        if any(sentence.spans for sentence in rest):
            shown = SupportSet.of(rest)
            yield Episode(shown, tuple(support.sentences[number].with_labels(shown.labels) for number in part))


def parts_of(sentences: Sequence[Sentence], most: int = 0) -> Iterator[list[int]]:
    """Numbers of the sentences that are held out together: each alone, or at most so many groups."""
    same: dict[tuple[str, ...], list[int]] = {}
    for number, sentence in enumerate(sentences):
        same.setdefault(sentence.words, []).append(number)
    groups = list(same.values())
    count = min(len(groups), most) if most else len(groups)
    for part in range(count):
        yield sorted(number for group in groups[part::count] for number in group)
