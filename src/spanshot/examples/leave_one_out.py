"""How well a set of examples serves, by itself: each part is tagged by what is learned from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spanshot.errors import EpisodeError
from spanshot.evaluation.counts import Counts, add_tables, count_by_label
from spanshot.research.learning.held_out import parts_of
from spanshot.research.methods import Method
from spanshot.types import ScoredSpan, Sentence, Span, SupportSet

MOST_PARTS = 25


@dataclass(frozen=True)
class Held:
    """An example that was held out, and what was found in it."""

    number: int
    """Its place among the examples."""
    sentence: Sentence
    found: tuple[ScoredSpan, ...]


@dataclass(frozen=True)
class LeaveOneOut:
    """What came of all examples that could be held out."""

    held: tuple[Held, ...]
    lonely: tuple[str, ...]
    """Labels with a single example: nothing is left to learn them from when it is held out."""

    @property
    def by_label(self) -> dict[str, Counts]:
        """Right and wrong spans of each label that could be learned without the example that has it."""
        tables = []
        for one in self.held:
            gold = [span for span in one.sentence.spans if span.label not in self.lonely]
            tables.append(count_by_label(gold, (scored.span for scored in one.found)))
        return add_tables(tables)

    @property
    def total(self) -> Counts:
        """The same, all labels together."""
        return sum(self.by_label.values(), Counts())

    @property
    def confusions(self) -> Counter[tuple[str, str]]:
        """How often a span of one label was found, but called another: (marked, found)."""
        pairs: Counter[tuple[str, str]] = Counter()
        for one in self.held:
            marked = {(span.start, span.end): span.label for span in one.sentence.spans}
            for scored in one.found:
                label = marked.get((scored.span.start, scored.span.end))
                if label is not None and label != scored.span.label:
                    pairs[label, scored.span.label] += 1
        return pairs


def leave_one_out(
    method: Method, sentences: Sequence[Sentence], watch: Callable[[int, int], None] | None = None
) -> LeaveOneOut:
    """Hold out each example in turn, or each of 25 parts of more than so many examples.

    An example that stands twice is held out with its double. ``watch`` is called with the parts done and their number.
    """
    distinct = list({sentence.words: sentence for sentence in sentences}.values())
    examples = Counter(label for sentence in distinct for label in {span.label for span in sentence.spans})
    lonely = tuple(sorted(label for label, count in examples.items() if count == 1))
    if not examples:
        raise EpisodeError("no span is marked in the examples; there is nothing to learn")
    if len(distinct) < 2:
        raise EpisodeError("there is but one example; to hold one out takes two at least")
    parts = list(parts_of(sentences, MOST_PARTS))
    held: list[Held] = []
    for done, part in enumerate(parts, start=1):
        rest = [sentence for number, sentence in enumerate(sentences) if number not in part]
        found: list[list[ScoredSpan]] = [[] for _ in part]
        if any(sentence.spans for sentence in rest):
            tagger = method.fit(SupportSet.of(rest))
            found = tagger([sentences[number].without_spans() for number in part])
        held += [Held(number, sentences[number], tuple(own)) for number, own in zip(part, found, strict=True)]
        if watch:
            watch(done, len(parts))
    return LeaveOneOut(tuple(sorted(held, key=lambda one: one.number)), lonely)


def unmarked(one: Held) -> list[Span]:
    """Spans found in a held-out example that touch nothing marked in it: forgotten ones, perhaps."""
    return [s.span for s in one.found if not any(s.span.overlaps(span) for span in one.sentence.spans)]
