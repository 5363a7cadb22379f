"""The values that the other modules pass around: immutable, checked when made, without torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from spanshot.errors import ConfigError, DataError, EpisodeError, did_you_mean
from spanshot.words import words_of

OUTSIDE = "O"
Progress = Callable[[int, int], None]
"""Called with the number of steps done and the number of all steps."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Words ``start`` up to but not including ``end``, and their label."""

    start: int
    end: int
    label: str

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise DataError(f"a span must have 0 <= start < end; found start={self.start}, end={self.end}")
        if not self.label or self.label == OUTSIDE:
            raise DataError(f"a span's label must be a name other than {OUTSIDE!r}; found {self.label!r}")

    def __len__(self) -> int:
        return self.end - self.start

    def overlaps(self, other: Span) -> bool:
        """Return whether the two spans share a word."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words, the spans marked in them, and the text that the words were read from.

    Spans may nest and are kept sorted. Two sentences are equal if their words and spans are: the text is kept to show
    it to people and to write it back unchanged, and does not count.

    >>> Sentence.of_text("to  Oslo!", [Span(1, 2, "city")])
    Sentence(words=('to', 'Oslo', '!'), spans=(Span(start=1, end=2, label='city'),))
    """

    words: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    text: str = field(default="", repr=False, compare=False)
    """The text of the sentence; empty if only the words are known."""
    offsets: tuple[tuple[int, int], ...] = field(default=(), repr=False, compare=False)
    """Start and end of each word in ``text``, in characters; empty if only the words are known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "spans", tuple(sorted(set(self.spans))))
        object.__setattr__(self, "offsets", tuple(self.offsets))
        if not self.words:
            raise DataError("a sentence must have at least one word; found none")
        for span in self.spans:
            if span.end > len(self.words):
                raise DataError(f"{span} ends after the sentence's last word; it has {len(self.words)} words")
        if not self.text and not self.offsets:
            return
        if len(self.offsets) != len(self.words):
            raise DataError(f"a text needs the offsets of all {len(self.words)} words; found {len(self.offsets)}")
        before = 0
        for word, (start, end) in zip(self.words, self.offsets, strict=True):
            if start < before or end - start != len(word) or self.text[start:end] != word:
                raise DataError(f"the word {word!r} does not stand at characters {start} to {end} of its text")
            before = end

    @classmethod
    def of_text(cls, text: str, spans: Iterable[Span] = ()) -> Sentence:
        """Split a text into words and keep it. Spans count words."""
        words = words_of(text)
        return cls(tuple(w.text for w in words), tuple(spans), text, tuple((w.start, w.end) for w in words))

    def __len__(self) -> int:
        return len(self.words)

    def with_text(self) -> Sentence:
        """Return the sentence with its text: if only the words are known, they are joined by single spaces."""
        if self.offsets:
            return self
        offsets, start = [], 0
        for word in self.words:
            offsets.append((start, start + len(word)))
            start += len(word) + 1
        return replace(self, text=" ".join(self.words), offsets=tuple(offsets))

    def text_of(self, start: int, end: int) -> str:
        """Return the words ``start`` up to but not including ``end`` as they stand in the text.

        >>> Sentence.of_text("on 2018-2022\\n").text_of(1, 4)
        '2018-2022'
        """
        if not self.offsets:
            return " ".join(self.words[start:end])
        return self.text[self.offsets[start][0] : self.offsets[end - 1][1]]

    def without_spans(self) -> Sentence:
        """Return the sentence with no spans marked."""
        return replace(self, spans=())

    def with_labels(self, labels: Collection[str]) -> Sentence:
        """Return the sentence with only the spans of these labels."""
        return replace(self, spans=tuple(span for span in self.spans if span.label in labels))


@dataclass(frozen=True, slots=True)
class SupportSet:
    """The labelled examples of a label set. Hashable, so that taggers can be cached by value."""

    labels: tuple[str, ...]
    sentences: tuple[Sentence, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "sentences", tuple(self.sentences))
        if len(set(self.labels)) != len(self.labels):
            raise EpisodeError(f"labels must differ from one another; found {list(self.labels)}")
        used = {span.label for sentence in self.sentences for span in sentence.spans}
        if unknown := sorted(used - set(self.labels)):
            raise EpisodeError(f"the support set marks labels it does not list: {', '.join(unknown)}")
        if missing := [label for label in self.labels if label not in used]:
            raise EpisodeError(
                f"no example for label {', '.join(map(repr, missing))}: mark at least one span of it in the "
                "support sentences, or leave the label out"
            )
        if not self.labels:
            raise EpisodeError("a support set needs at least one labelled span; found none")

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> SupportSet:
        """Build a support set whose labels are those marked in the sentences, in alphabetical order."""
        sentences = tuple(sentences)
        return cls(tuple(sorted({span.label for s in sentences for span in s.spans})), sentences)


@dataclass(frozen=True, slots=True)
class LearnOptions:
    """How examples are learned and texts are tagged."""

    nested: bool = False
    """Find entities within entities."""
    threshold: float | Mapping[str, float] = field(default=0.0, hash=False)
    """Return only entities with at least this score: one value, or one per label (0 for labels without one)."""
    finetune: bool = False
    """Take gradient steps on the examples first."""
    window: int = 128
    """Most words of a text that are read at once. Longer texts are read in windows that overlap."""
    max_batch_words: int = 256
    """Most words of a batch, padding included. It bounds memory; of 128 to 1,024, 256 was the fastest on a CPU."""

    def __post_init__(self) -> None:
        limits = self.threshold.values() if isinstance(self.threshold, Mapping) else [self.threshold]
        if not all(0 <= limit <= 1 for limit in limits):
            raise ConfigError(f"a threshold must be from 0 to 1; found {self.threshold}")
        if self.window < 2 or self.max_batch_words < 1:
            raise ConfigError(
                f"window must be at least 2 and max_batch_words 1; found {self.window} and {self.max_batch_words}"
            )

    def for_labels(self, labels: Collection[str]) -> LearnOptions:
        """Return the options without the thresholds of other labels."""
        if not isinstance(self.threshold, Mapping):
            return self
        return replace(self, threshold={label: low for label, low in self.threshold.items() if label in labels})

    def check_labels(self, labels: Collection[str]) -> None:
        """Raise ``EpisodeError`` if there is a threshold for an unknown label."""
        for label in self.threshold if isinstance(self.threshold, Mapping) else ():
            if label not in labels:
                hint = did_you_mean(label, labels)
                raise EpisodeError(f"threshold: unknown label {label!r}; the labels are {', '.join(labels)}{hint}")


class SentenceTagger(Protocol):
    """Finds the spans of a label set in sentences. A value: calling it changes nothing."""

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Return the spans found in each sentence; the spans marked in the sentences are ignored."""
        ...


@dataclass(frozen=True, slots=True)
class Episode:
    """A few-shot task: learn from ``support``, tag ``query`` (whose spans are the gold answer)."""

    support: SupportSet
    query: tuple[Sentence, ...]
    domain: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", tuple(self.query))
        if not self.query:
            raise EpisodeError("an episode needs at least one query sentence; found none")
        known = set(self.support.labels)
        unknown = {span.label for s in self.query for span in s.spans if span.label not in known}
        if unknown:
            raise EpisodeError(f"the query marks labels that the support set lacks: {', '.join(sorted(unknown))}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of the support set that contributed to a decision."""

    sentence: int
    """The number of its sentence in the support set."""
    span: Span
    weight: float
    """Its share (0..1) among the spans of its label."""


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span found by a tagger, with its score (0..1)."""

    span: Span
    score: float
    because: tuple[Evidence, ...] = ()
    """The support spans with the largest shares in the decision, largest first; empty if the method has none."""


@dataclass(frozen=True, slots=True)
class Reason:
    """An example that contributed to a decision, as text."""

    text: str
    """The text of the span marked in it."""
    example: str
    """The text of the example; its words joined by spaces if only they are known."""
    weight: float
    """Its share (0..1) among the examples of the label."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity found in a text: ``text == source[start:end]``, in characters."""

    text: str
    label: str
    start: int
    end: int
    score: float = 1.0
    """The model's confidence (0..1)."""
    because: tuple[Reason, ...] = ()
    """The examples with the largest shares in the decision, largest first."""
