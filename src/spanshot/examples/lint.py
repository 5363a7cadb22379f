"""What is wrong or thin in a set of examples, found by looking at them alone, without a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spanshot.types import Sentence

FEW = 3
LONG = 8


class Kind(StrEnum):
    """Kinds of findings, the gravest first."""

    CONFLICT = "conflict"
    FORGOTTEN = "forgotten"
    DUPLICATE = "duplicate"
    SINGLE = "single"
    FEW = "few"
    NO_NEGATIVE = "no negative"
    LONG = "long"
    TWO_LABELS = "two labels"


@dataclass(frozen=True)
class Finding:
    """Something that a person should look at."""

    kind: Kind
    message: str
    examples: tuple[int, ...] = ()
    """The numbers of the examples that it is about, counted from 1."""


def findings(sentences: Sequence[Sentence]) -> list[Finding]:
    """All findings, the gravest first."""
    found = [
        *_conflicts(sentences),
        *_forgotten(sentences),
        *_duplicates(sentences),
        *_thin_labels(sentences),
        *_negatives(sentences),
        *_long(sentences),
        *_two_labels(sentences),
    ]
    order = list(Kind)
    return sorted(found, key=lambda finding: order.index(finding.kind))


def _same_words(sentences: Sequence[Sentence]) -> Iterator[list[int]]:
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        same[tuple(word.lower() for word in sentence.words)].append(number)
    yield from (numbers for numbers in same.values() if len(numbers) > 1)


def _conflicts(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    for numbers in _same_words(sentences):
        if len({sentences[number].spans for number in numbers}) > 1:
            yield Finding(Kind.CONFLICT, "the same text is marked in different ways", _counted(numbers))


def _duplicates(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    for numbers in _same_words(sentences):
        if len({sentences[number].spans for number in numbers}) == 1:
            yield Finding(Kind.DUPLICATE, "the same example stands here more than once", _counted(numbers))


def _forgotten(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """What is marked in one example and stands unmarked in another, in the same case."""
    marked: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for sentence in sentences:
        for span in sentence.spans:
            marked[sentence.words[span.start : span.end]].add(span.label)
    for words, labels in marked.items():
        bare = [number for number, sentence in enumerate(sentences) if _stands_unmarked(words, sentence)]
        if bare and any(map(str.isalnum, "".join(words))):
            what = f"{' '.join(words)!r} is marked as {', '.join(sorted(labels))} elsewhere, but not here"
            yield Finding(Kind.FORGOTTEN, what, _counted(bare))


def _stands_unmarked(words: tuple[str, ...], sentence: Sentence) -> bool:
    for start in range(len(sentence) - len(words) + 1):
        end = start + len(words)
        touched = any(span.start < end and start < span.end for span in sentence.spans)
        if not touched and sentence.words[start:end] == words:
            return True
    return False


def _thin_labels(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    having: dict[str, set[int]] = defaultdict(set)
    for number, sentence in enumerate(sentences):
        for span in sentence.spans:
            having[span.label].add(number)
    for label, numbers in sorted(having.items()):
        if len(numbers) == 1:
            yield Finding(Kind.SINGLE, f"{label!r} is marked in one example only", _counted(sorted(numbers)))
        elif len(numbers) < FEW:
            yield Finding(Kind.FEW, f"{label!r} is marked in {len(numbers)} examples only", _counted(sorted(numbers)))


def _negatives(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    covered = [all(_is_marked(at, sentence) for at in range(len(sentence))) for sentence in sentences]
    if sentences and all(covered):
        yield Finding(
            Kind.NO_NEGATIVE,
            "every word of every example is marked: give whole sentences, so that the model sees what is no entity",
        )


def _is_marked(at: int, sentence: Sentence) -> bool:
    return any(span.start <= at < span.end for span in sentence.spans)


def _long(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    for number, sentence in enumerate(sentences):
        for span in sentence.spans:
            if len(span) > LONG:
                beginning = " ".join(sentence.words[span.start : span.start + 4])
                what = f"{span.label!r} is {len(span)} words long ({beginning!r} ...); spans so long are rarely found"
                yield Finding(Kind.LONG, what, _counted([number]))


def _two_labels(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    for number, sentence in enumerate(sentences):
        by_bounds: dict[tuple[int, int], list[str]] = defaultdict(list)
        for span in sentence.spans:
            by_bounds[span.start, span.end].append(span.label)
        for (start, end), labels in by_bounds.items():
            if len(labels) > 1:
                what = f"{' '.join(sentence.words[start:end])!r} has several labels: {', '.join(labels)}"
                yield Finding(Kind.TWO_LABELS, what, _counted([number]))


def _counted(numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(number + 1 for number in numbers)
