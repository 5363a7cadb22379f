"""Episodes of raw texts, with entities in characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanshot.formats.json_values import JsonValue
from spanshot.research.corpora.episode_files import read_episode_lines
from spanshot.types import Entity, Sentence

Tag = Callable[[Sequence[str]], list[list[Entity]]]
"""Finds the entities of each text."""


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A labelled range of characters, ``end`` exclusive."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class TextExample:
    """A text and its annotated entities."""

    text: str
    marks: frozenset[Mark] = frozenset()

    @classmethod
    def of(cls, sentence: Sentence) -> TextExample:
        """Join the words of a sentence by spaces.

        >>> from spanshot.types import Span
        >>> TextExample.of(Sentence(("to", "New", "York"), (Span(1, 3, "city"),))).marks
        frozenset({Mark(start=3, end=11, label='city')})
        """
        joined = sentence.with_text()
        at = joined.offsets
        marks = (Mark(at[span.start][0], at[span.end - 1][1], span.label) for span in sentence.spans)
        return cls(joined.text, frozenset(marks))

    def record(self) -> Mapping[str, JsonValue]:
        """Return the example as `spanshot.learn` takes it."""
        marks = sorted(self.marks)
        entities: list[JsonValue] = [{"start": m.start, "end": m.end, "label": m.label} for m in marks]
        return {"text": self.text, "entities": entities}

    def renamed(self, names: Mapping[str, str]) -> TextExample:
        """Return the example with other labels."""
        return TextExample(self.text, frozenset(Mark(m.start, m.end, names[m.label]) for m in self.marks))

    def texts(self) -> frozenset[tuple[str, str]]:
        """Return the text, in lower case, and the label of each entity."""
        return frozenset((self.text[m.start : m.end].casefold(), m.label) for m in self.marks)


@dataclass(frozen=True, slots=True)
class TextEpisode:
    """Labels, annotated texts to learn from, and texts to tag with their gold entities."""

    labels: tuple[str, ...]
    support: tuple[TextExample, ...]
    query: tuple[TextExample, ...]


def read_text_episodes(path: Path) -> list[TextEpisode]:
    """Read a file of episodes and join words by spaces."""
    return [
        TextEpisode(
            episode.support.labels,
            tuple(map(TextExample.of, episode.support.sentences)),
            tuple(map(TextExample.of, episode.query)),
        )
        for episode in read_episode_lines(path)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Counts over the query texts of one or more episodes. Adds up with ``+``."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    empty: int = 0
    """Texts without a gold entity."""
    false_alarms: int = 0
    """Texts without a gold entity in which one was found."""
    verbatim: int = 0
    """Gold entities whose text and label occur in the support set."""
    verbatim_found: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        names = self.__dataclass_fields__
        return Outcome(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def f1(self) -> float:
        """Micro F1, in percent.

        >>> Outcome(tp=1, fp=1, fn=1).f1
        50.0
        """
        return 200 * self.tp / (2 * self.tp + self.fp + self.fn) if self.tp else 0.0


def compare(episode: TextEpisode, predictions: Iterable[Sequence[Entity]]) -> list[Outcome]:
    """Compare the entities found in each query text with the gold ones, by characters and label."""
    support_texts = {text for example in episode.support for text in example.texts()}
    outcomes = []
    for example, entities in zip(episode.query, predictions, strict=True):
        predicted = {Mark(entity.start, entity.end, entity.label) for entity in entities}
        right = example.marks & predicted
        verbatim = {m for m in example.marks if (example.text[m.start : m.end].casefold(), m.label) in support_texts}
        outcomes.append(
            Outcome(
                tp=len(right),
                fp=len(predicted - right),
                fn=len(example.marks - right),
                empty=int(not example.marks),
                false_alarms=int(not example.marks and bool(predicted)),
                verbatim=len(verbatim),
                verbatim_found=len(verbatim & predicted),
            )
        )
    return outcomes
