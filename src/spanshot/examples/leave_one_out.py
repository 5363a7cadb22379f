"""Measure how well examples work: tag each part of them with a tagger that learned the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from spanshot.errors import EpisodeError
from spanshot.evaluation.report import Report
from spanshot.examples.parts import parts_of, sample_of
from spanshot.types import Entity, Sentence, Span, SupportSet

MOST_PARTS = 25
MOST_EXAMPLES = 200
"""Maximum number of examples to hold out; of more, a sample is used."""


class TextTagger(Protocol):
    """Finds entities in texts, like ``spanshot.Tagger``."""

    def pipe(self, texts: Iterable[str]) -> Iterator[list[Entity]]:
        """Yield the entities of each text, in order."""


Learn = Callable[[SupportSet], TextTagger]
"""Function that learns examples and returns a tagger."""
Watch = Callable[[int, int], None]
"""Function that is called with the number of finished steps and of all steps."""


@dataclass(frozen=True)
class TaggedExample:
    """An example and the entities found in its text."""

    number: int
    """Its position among the examples, counted from 0."""
    sentence: Sentence
    entities: tuple[Entity, ...]
    labels: frozenset[str]
    """The labels that the tagger had learned; others are not counted as missed."""
    suggestions: tuple[Entity, ...] | None = None
    """Entities with any score, if the tagger has default thresholds."""

    @property
    def gold(self) -> list[Span]:
        """Return the marked spans with a learned label, in characters."""
        return [span for span in character_spans(self.sentence) if span.label in self.labels]

    @property
    def predicted(self) -> list[Span]:
        """Return the spans of the entities, in characters."""
        return [Span(entity.start, entity.end, entity.label) for entity in self.entities]

    @property
    def of_any_score(self) -> tuple[Entity, ...]:
        """Return the entities, including those with low scores if available."""
        return self.entities if self.suggestions is None else self.suggestions

    @property
    def unmarked(self) -> list[Entity]:
        """Return the entities that touch no marked span: the examples may lack a mark there."""
        marked = character_spans(self.sentence)
        return [e for e in self.entities if not any(e.start < span.end and span.start < e.end for span in marked)]


@dataclass(frozen=True)
class ExampleResults:
    """The results of all examples that were tagged."""

    tagged: tuple[TaggedExample, ...]
    examples: int
    """Number of all examples, tagged or not."""

    @cached_property
    def report(self) -> Report:
        """Correct, missed and wrong spans, in total and by label."""
        return Report.of_sentences((example.gold, example.predicted) for example in self.tagged)

    @property
    def untested(self) -> tuple[str, ...]:
        """Labels whose spans could not be tested: all their examples were held out at once, or are too few."""
        marked = {span.label for example in self.tagged for span in example.sentence.spans}
        return tuple(sorted(marked - {span.label for example in self.tagged for span in example.gold}))


def leave_one_out(
    learn: Learn,
    sentences: Sequence[Sentence],
    watch: Watch | None = None,
    *,
    parts: int = MOST_PARTS,
    limit: int = MOST_EXAMPLES,
) -> ExampleResults:
    """Hold out each example in turn, or each of several parts, and tag it with a tagger that learned the rest.

    Examples with the same words are held out together. Of more than ``limit`` examples, a sample is used. A label
    without any remaining example is not counted as missed.
    """
    chosen = sample_of(sentences, limit) if limit and len(sentences) > limit else list(range(len(sentences)))
    sample = [sentences[number] for number in chosen]
    if not any(sentence.spans for sentence in sample):
        raise EpisodeError("no span is marked in the examples; mark at least one, such as [Apple](ORG)")
    held_out = list(parts_of(sample, parts))
    if len(held_out) < 2:
        raise EpisodeError("leave-one-out needs at least two examples; found one")
    tagged: list[TaggedExample] = []
    for done, part in enumerate(held_out, start=1):
        remaining = [sentence for number, sentence in enumerate(sample) if number not in set(part)]
        tagged += tag_examples(learn, remaining, [(chosen[number], sample[number]) for number in part])
        if watch:
            watch(done, len(held_out))
    return ExampleResults(tuple(sorted(tagged, key=lambda example: example.number)), len(sentences))


def tag_examples(
    learn: Learn,
    support: Sequence[Sentence],
    numbered: Sequence[tuple[int, Sentence]],
    names: Mapping[str, str] | None = None,
) -> list[TaggedExample]:
    """Learn from ``support`` and tag other sentences. Without any marked span there is nothing to find."""
    labels = frozenset({span.label for sentence in support for span in sentence.spans} | set(names or {}))
    texts = [sentence.with_text().text for _, sentence in numbered]
    entities_of_texts = learn(SupportSet.of(support, names)).pipe(texts) if labels else iter([[] for _ in texts])
    return [
        TaggedExample(number, sentence, tuple(entities), labels)
        for (number, sentence), entities in zip(numbered, entities_of_texts, strict=True)
    ]


def character_spans(sentence: Sentence) -> list[Span]:
    """Return the spans of a sentence in characters of its text."""
    offsets = sentence.with_text().offsets
    return [Span(offsets[span.start][0], offsets[span.end - 1][1], span.label) for span in sentence.spans]
