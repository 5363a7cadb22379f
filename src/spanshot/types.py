"""The values that all modules share: immutable, validated on creation, without torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from spanshot.errors import ConfigError, DataError, EpisodeError, did_you_mean
from spanshot.words import Word, boundary, is_inside_word, places_of, split_words, words_of

OUTSIDE = "O"
Progress = Callable[[int, int], None]
"""Callback: called with the number of steps done and the total."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A labelled range of words, ``end`` exclusive."""

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

    Spans may nest and are kept sorted. Two sentences are equal if their words and annotations are: the text is kept
    for display and for writing it back unchanged, and is not compared.

    >>> Sentence.of_text("to  Oslo!", [Span(1, 2, "city")])
    Sentence(words=('to', 'Oslo', '!'), spans=(Span(start=1, end=2, label='city'),))
    """

    words: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    text: str = field(default="", repr=False, compare=False)
    """The text of the sentence; empty if only the words are known."""
    offsets: tuple[tuple[int, int], ...] = field(default=(), repr=False, compare=False)
    """Start and end of each word in ``text``, in characters; empty if only the words are known."""
    rejected: tuple[Span, ...] = ()
    """Spans for which the label was rejected: ``Span(1, 2, "city")`` is not a city."""
    annotated: tuple[str, ...] | None = None
    """The labels that were annotated (None: all labels of the support set)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "spans", tuple(sorted(set(self.spans))))
        object.__setattr__(self, "offsets", tuple(self.offsets))
        object.__setattr__(self, "rejected", tuple(sorted(set(self.rejected))))
        if not self.words:
            raise DataError("a sentence must have at least one word; found none")
        for span in (*self.spans, *self.rejected):
            if span.end > len(self.words):
                raise DataError(f"{span} ends after the sentence's last word; it has {len(self.words)} words")
        if contradictory := set(self.spans) & set(self.rejected):
            raise DataError(f"{min(contradictory)} is both marked and rejected")
        if self.annotated is not None:
            object.__setattr__(self, "annotated", tuple(sorted(set(self.annotated))))
            if unknown := {span.label for span in self.spans} - set(self.annotated):
                raise DataError(f"the sentence marks {min(unknown)!r}, which is not among its annotated labels")
        if not self.text and not self.offsets:
            return
        if len(self.offsets) != len(self.words):
            raise DataError(f"a text needs the offsets of all {len(self.words)} words; found {len(self.offsets)}")
        before = 0
        for word, (start, end) in zip(self.words, self.offsets, strict=True):
            if start < before or end - start != len(word) or self.text[start:end] != word:
                raise DataError(f"the word {word!r} does not stand at characters {start} to {end} of its text")
            before = end

    def __repr__(self) -> str:
        fields = [f"words={self.words!r}", f"spans={self.spans!r}"]
        fields += [f"rejected={self.rejected!r}"] if self.rejected else []
        fields += [f"annotated={self.annotated!r}"] if self.annotated is not None else []
        return f"Sentence({', '.join(fields)})"

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
        """Return the text of the words from ``start`` to ``end`` (exclusive).

        >>> Sentence.of_text("on 2018-2022\\n").text_of(1, 4)
        '2018-2022'
        """
        if not self.offsets:
            return " ".join(self.words[start:end])
        return self.text[self.offsets[start][0] : self.offsets[end - 1][1]]

    def inner_boundaries(self) -> list[int]:
        """Return the positions in the text where a marked or rejected span begins or ends inside a word.

        >>> Sentence(("500", "mg"), (Span(0, 1, "dose"),), "500mg", ((0, 3), (3, 5))).inner_boundaries()
        [3]
        """
        if not self.offsets:
            return []
        spans = (*self.spans, *self.rejected)
        ends = {at for s in spans for at in (self.offsets[s.start][0], self.offsets[s.end - 1][1])}
        framed = f" {self.text} "
        return sorted(at for at in ends if " " not in framed[at : at + 2] and is_inside_word(self.text, at))

    def cut_at(self, cuts: Collection[str]) -> Sentence:
        """Return the sentence with its words cut at boundaries of these kinds; see `spanshot.words.boundary`."""
        if not self.offsets:
            return self
        words = [Word(word, *place) for word, place in zip(self.words, self.offsets, strict=True)]
        parts = split_words(words, [at for word in words for at in places_of(word.text, cuts, word.start)])
        if len(parts) == len(words):
            return self
        first = {part.start: at for at, part in enumerate(parts)}
        last = {part.end: at + 1 for at, part in enumerate(parts)}

        def moved(spans: tuple[Span, ...]) -> tuple[Span, ...]:
            return tuple(
                Span(first[self.offsets[s.start][0]], last[self.offsets[s.end - 1][1]], s.label) for s in spans
            )

        return replace(
            self,
            words=tuple(part.text for part in parts),
            spans=moved(self.spans),
            rejected=moved(self.rejected),
            offsets=tuple((part.start, part.end) for part in parts),
        )

    def without_spans(self) -> Sentence:
        """Return the sentence with no spans marked."""
        return replace(self, spans=(), rejected=(), annotated=None)

    def with_labels(self, labels: Collection[str]) -> Sentence:
        """Return the sentence with only the spans of these labels."""
        annotated = self.annotated
        return replace(
            self,
            spans=tuple(span for span in self.spans if span.label in labels),
            rejected=tuple(span for span in self.rejected if span.label in labels),
            annotated=None if annotated is None else tuple(label for label in annotated if label in labels),
        )


@dataclass(frozen=True, slots=True)
class SupportSet:
    """The labels to learn and their examples. Hashable, so that taggers can be cached by value.

    A label may have a name or description, and no example yet. Sentences may be without any span.

    >>> SupportSet(("PER", "drug"), (), {"PER": "person"}).names
    ('person', '')
    """

    labels: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    names: tuple[str, ...] = ()
    """A readable name or a description of each label; empty: the label itself. May be given as a mapping."""
    cuts: tuple[str, ...] = ()
    """Kinds of boundaries at which words are split, in examples and in new texts: those where a marked span ends inside
    a word, such as ``digit|letter`` if ``500`` is marked in ``500mg``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "sentences", tuple(self.sentences))
        if len(set(self.labels)) != len(self.labels):
            raise EpisodeError(f"labels must differ from one another; found {list(self.labels)}")
        for label in self.labels:
            if not label or label == OUTSIDE:
                raise EpisodeError(f"a label must be a name other than {OUTSIDE!r}; found {label!r}")
        spans = (span for sentence in self.sentences for span in (*sentence.spans, *sentence.rejected))
        if unknown := sorted({span.label for span in spans} - set(self.labels)):
            raise EpisodeError(f"the support set marks labels it does not list: {', '.join(unknown)}")
        if not self.labels:
            raise EpisodeError("a support set needs at least one label; mark a span in an example, or name the labels")
        names = self.names
        if isinstance(names, Mapping):
            if unknown := sorted(set(names) - set(self.labels)):
                raise EpisodeError(f"names are given for labels that the support set lacks: {', '.join(unknown)}")
            names = tuple(str(names.get(label, "")) for label in self.labels)
        names = tuple(" ".join(name.split()) for name in names) or ("",) * len(self.labels)
        if len(names) != len(self.labels):
            raise EpisodeError(
                f"a support set needs a name for each of its {len(self.labels)} labels; found {len(names)}"
            )
        object.__setattr__(self, "names", names)
        inner = ((s.text, at) for s in self.sentences for at in s.inner_boundaries())
        kinds = {boundary(text[at - 1], text[at]) for text, at in inner} | set(self.cuts)
        cuts = tuple(sorted(kind for kind in kinds if kind is not None))
        object.__setattr__(self, "cuts", cuts)
        if cuts:
            object.__setattr__(self, "sentences", tuple(sentence.cut_at(cuts) for sentence in self.sentences))

    @classmethod
    def of(
        cls, sentences: Iterable[Sentence], names: Mapping[str, str] | None = None, cuts: Iterable[str] = ()
    ) -> SupportSet:
        """Build a support set of the labels in the sentences and in ``names``, in alphabetical order."""
        sentences, names = tuple(sentences), names or {}
        marked = {span.label for s in sentences for span in (*s.spans, *s.rejected)}
        return cls(tuple(sorted(marked | set(names))), sentences, names, tuple(cuts))  # type: ignore[arg-type]

    @property
    def label_names(self) -> dict[str, str]:
        """The name of each label; empty: the label itself."""
        return dict(zip(self.labels, self.names, strict=True))

    @property
    def name_of(self) -> dict[str, str]:
        """The names of the labels that have one."""
        return {label: name for label, name in self.label_names.items() if name}

    def without_examples(self) -> tuple[str, ...]:
        """Return the labels that no sentence marks."""
        marked = {span.label for sentence in self.sentences for span in sentence.spans}
        return tuple(label for label in self.labels if label not in marked)

    def check_examples(self) -> None:
        """Raise ``EpisodeError`` if a label has no example, for methods that need one."""
        if missing := self.without_examples():
            raise EpisodeError(
                f"no example for label {', '.join(map(repr, missing))}: mark at least one span of it in the "
                "support sentences, or leave the label out"
            )


@dataclass(frozen=True, slots=True)
class LearnOptions:
    """Options for learning examples and tagging texts."""

    nested: bool = False
    """Find entities within entities."""
    threshold: float | Mapping[str, float] | None = field(default=None, hash=False)
    """Return only entities with at least this score: one value, or one per label. Default: chosen by the model."""
    finetune: bool = False
    """Take gradient steps on the examples first."""
    window: int = 128
    """Maximum number of words to read at once. Longer texts are read in overlapping windows."""
    max_batch_words: int = 256
    """Maximum number of words in a batch, padding included. Bounds memory; 256 was the fastest on a CPU."""
    precision: float | None = None
    """Target precision: choose thresholds so that about this share of the entities is right."""

    def __post_init__(self) -> None:
        limits = self.threshold.values() if isinstance(self.threshold, Mapping) else [self.threshold]
        if not all(limit is None or 0 <= limit <= 1 for limit in limits):
            raise ConfigError(f"a threshold must be from 0 to 1; found {self.threshold}")
        if self.precision is not None and not 0 < self.precision < 1:
            raise ConfigError(f"precision must be between 0 and 1, such as 0.9; found {self.precision}")
        if self.window < 2 or self.max_batch_words < 1:
            raise ConfigError(
                f"window must be at least 2 and max_batch_words 1; found {self.window} and {self.max_batch_words}"
            )

    def threshold_of(self, label: str) -> float | None:
        """Return the threshold of a label; None: the model's default."""
        return self.threshold.get(label) if isinstance(self.threshold, Mapping) else self.threshold

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
    """Finds the spans of a label set in sentences. Immutable."""

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Return the spans found in each sentence; the spans marked in the sentences are ignored."""
        ...


class Learner(Protocol):
    """Learns support sets: the engine's learner, or a method on the upper floor."""

    @property
    def name(self) -> str:
        """The name of the method."""
        ...

    def fit(self, support: SupportSet, options: LearnOptions | None = None) -> SentenceTagger:
        """Learn the labels of a support set and return a tagger."""
        ...

    def finetuned(self, support: SupportSet, progress: Progress | None = None) -> Learner | None:
        """Return a copy, fine-tuned on a support set; None if the set is too small for that."""
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
        self.support.check_examples()
        labels = set(self.support.labels)
        unknown = {span.label for s in self.query for span in s.spans if span.label not in labels}
        if unknown:
            raise EpisodeError(f"the query marks labels that the support set lacks: {', '.join(sorted(unknown))}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A part of the reason for a decision: a span of the support set, or something else that ``kind`` names."""

    sentence: int
    """The number of the span's sentence in the support set; -1 if there is none."""
    span: Span | None
    weight: float
    """Contribution to the score before calibration; may be negative. For methods that compare spans with examples by
    similarity: its share (0..1) among the spans of its label."""
    kind: str = "example"
    """``example``, ``rejected`` (a rejected span), ``name`` (the label's name), ``text`` (the same text is marked in
    examples) or ``rest`` (everything else)."""


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span found by a tagger, with its score (0..1)."""

    span: Span
    score: float
    because: tuple[Evidence, ...] = ()
    """The parts of the decision with the largest weights, largest first; empty if the method gives none."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A part of the reason for a decision, as text."""

    text: str
    """The text of the example's span, or the name of the label, or the text that examples mark."""
    example: str
    """The text of the example; its words joined by spaces if only they are known. Empty for other kinds of reasons."""
    weight: float
    """Contribution to the score before calibration; negative if it counts against the label. For models that compare
    with examples by similarity: its share (0..1) among the examples of the label."""
    kind: str = "example"
    """``example``, ``rejected`` (a rejected span), ``name`` (the label's name), ``text`` (the same text is marked in
    examples) or ``rest`` (everything else)."""


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
    """The parts of the decision with the largest weights, largest first."""
