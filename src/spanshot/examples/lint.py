"""Find mistakes in examples by looking at them alone, without a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spanshot.json_text import JsonValue
from spanshot.types import Sentence

FEW = 3
LONG = 8


class Kind(StrEnum):
    """Kinds of findings, the most serious first."""

    CONFLICT = "conflict"
    WEAK = "weak"
    UNMARKED = "unmarked"
    DUPLICATE = "duplicate"
    SINGLE = "single"
    FEW = "few"
    NO_NEGATIVE = "no negative"
    LONG = "long"
    TWO_LABELS = "two labels"


@dataclass(frozen=True)
class Finding:
    """A possible mistake."""

    kind: Kind
    message: str
    examples: tuple[int, ...] = ()
    """The numbers of the examples concerned, counted from 1."""

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the finding for JSON."""
        return {"kind": self.kind.value, "message": self.message, "examples": list(self.examples)}


def findings(sentences: Sequence[Sentence]) -> list[Finding]:
    """Return all findings, the most serious first."""
    return ordered(
        [
            *_conflicts(sentences),
            *_unmarked(sentences),
            *_duplicates(sentences),
            *_thin_labels(sentences),
            *_negatives(sentences),
            *_long(sentences),
            *_two_labels(sentences),
        ]
    )


def ordered(all_findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings, the most serious first."""
    order = list(Kind)
    return sorted(all_findings, key=lambda finding: order.index(finding.kind))


def _same_text(sentences: Sequence[Sentence]) -> Iterator[list[int]]:
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        groups[tuple(word.lower() for word in sentence.words)].append(number)
    yield from (numbers for numbers in groups.values() if len(numbers) > 1)


def _conflicts(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    for numbers in _same_text(sentences):
        if len({sentences[number].spans for number in numbers}) > 1:
            yield Finding(Kind.CONFLICT, "the same text is marked in different ways", _from_one(numbers))


def _duplicates(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    for numbers in _same_text(sentences):
        if len({sentences[number].spans for number in numbers}) == 1:
            yield Finding(Kind.DUPLICATE, "the same example appears more than once", _from_one(numbers))


def _unmarked(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """Find words that are marked in one example and unmarked in another, in the same case."""
    labels: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for sentence in sentences:
        for span in sentence.spans:
            labels[sentence.words[span.start : span.end]].add(span.label)
    by_first_word: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for words in labels:
        by_first_word[words[0]].append(words)
    unmarked: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        for words in _unmarked_words(sentence, by_first_word):
            unmarked[words].append(number)
    for words, names in labels.items():
        if words in unmarked and any(map(str.isalnum, "".join(words))):
            message = f"{' '.join(words)!r} is marked as {', '.join(sorted(names))} elsewhere, but not here"
            yield Finding(Kind.UNMARKED, message, _from_one(unmarked[words]))


def _unmarked_words(sentence: Sentence, by_first_word: dict[str, list[tuple[str, ...]]]) -> set[tuple[str, ...]]:
    """Return the known word sequences that occur in a sentence without touching a span."""
    marked = {at for span in sentence.spans for at in range(span.start, span.end)}
    unmarked = set()
    for start, word in enumerate(sentence.words):
        for words in by_first_word.get(word, ()):
            end = start + len(words)
            if sentence.words[start:end] == words and marked.isdisjoint(range(start, end)):
                unmarked.add(words)
    return unmarked


def _thin_labels(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    examples: dict[str, set[int]] = defaultdict(set)
    for number, sentence in enumerate(sentences):
        for span in sentence.spans:
            examples[span.label].add(number)
    for label, numbers in sorted(examples.items()):
        if len(numbers) == 1:
            yield Finding(Kind.SINGLE, f"{label!r} is marked in one example only", _from_one(sorted(numbers)))
        elif len(numbers) < FEW:
            message = f"{label!r} is marked in {len(numbers)} examples only"
            yield Finding(Kind.FEW, message, _from_one(sorted(numbers)))


def _negatives(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    covered = [{at for s in sentence.spans for at in range(s.start, s.end)} for sentence in sentences]
    if sentences and all(len(marked) == len(sentence) for marked, sentence in zip(covered, sentences, strict=True)):
        message = "every word of every example is marked: use whole sentences, which show what is not an entity"
        yield Finding(Kind.NO_NEGATIVE, message)


def _long(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    for number, sentence in enumerate(sentences):
        for span in sentence.spans:
            if len(span) > LONG:
                beginning = " ".join(sentence.words[span.start : span.start + 4])
                message = f"{span.label!r} is {len(span)} words long ({beginning!r} ...); such spans are rarely found"
                yield Finding(Kind.LONG, message, _from_one([number]))


def _two_labels(sentences: Sequence[Sentence]) -> Iterator[Finding]:
    for number, sentence in enumerate(sentences):
        by_bounds: dict[tuple[int, int], list[str]] = defaultdict(list)
        for span in sentence.spans:
            by_bounds[span.start, span.end].append(span.label)
        for (start, end), labels in by_bounds.items():
            if len(labels) > 1:
                message = f"{' '.join(sentence.words[start:end])!r} has several labels: {', '.join(labels)}"
                yield Finding(Kind.TWO_LABELS, message, _from_one([number]))


def _from_one(numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(number + 1 for number in numbers)
