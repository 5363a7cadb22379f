"""A text with marks in characters: the common form for conversion between formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spanshot.formats.char_spans import MarkedText, character_bounds, short
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.json_values import JsonValue
from spanshot.types import Entity, Sentence, Span
from spanshot.words import Word, covered, split_words, words_of


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled range of characters, ``end`` exclusive."""

    start: int
    end: int
    label: str
    score: float | None = None
    """Confidence of the tagger; None if a person made the mark."""

    def described(self, text: str) -> str:
        """Describe the mark for a message."""
        return f"{short(text[self.start : self.end])} ({short(self.label, quote=False)})"


@dataclass(frozen=True, slots=True)
class Document:
    """A text and its marks, sorted by position."""

    text: str
    marks: tuple[Mark, ...] = ()
    offsets: tuple[tuple[int, int], ...] = ()
    """Start and end of each word; if empty, the text is split into words as usual."""
    fields: Mapping[str, JsonValue] = field(default_factory=dict)
    """Other fields of its record, such as an id."""
    predicted: bool = False
    """The marks come from a tagger, so they are suggestions to annotation tools."""
    rejected: tuple[Mark, ...] = ()
    """Spans for which the annotator rejected the label."""
    annotated: tuple[str, ...] | None = None
    """The labels that were annotated (None: all)."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "marks", tuple(sorted(self.marks, key=lambda mark: (mark.start, mark.end, mark.label)))
        )

    @classmethod
    def of(cls, sentence: Sentence) -> Document:
        """Return the text of a sentence as it was read, or its words joined by single spaces, with its spans.

        >>> Document.of(Sentence(("in", "Oslo"), (Span(1, 2, "city"),))).marks
        (Mark(start=3, end=7, label='city', score=None),)
        """
        sentence = sentence.with_text()
        offsets = sentence.offsets
        marks, rejected = (
            tuple(Mark(offsets[s.start][0], offsets[s.end - 1][1], s.label) for s in spans)
            for spans in (sentence.spans, sentence.rejected)
        )
        return cls(sentence.text, marks, offsets, rejected=rejected, annotated=sentence.annotated)

    @classmethod
    def tagged(cls, text: str, entities: Iterable[Entity], fields: Mapping[str, JsonValue] | None = None) -> Document:
        """Return a text with the entities that a tagger found."""
        marks = tuple(Mark(entity.start, entity.end, entity.label, entity.score) for entity in entities)
        return cls(text, marks, fields=fields or {}, predicted=True)

    @property
    def words(self) -> list[Word]:
        """The words of the text, cut where a mark begins or ends inside them."""
        words = [Word(self.text[start:end], start, end) for start, end in self.offsets] or words_of(self.text)
        return split_words(words, [at for mark in self.marks for at in (mark.start, mark.end)])

    def spans(self, log: DropLog, place: str) -> tuple[list[Word], dict[Span, Mark]]:
        """Return the words, and the marks as spans of words. Marks without a word go to the log."""
        words = self.words
        spans: dict[Span, Mark] = {}
        for mark in self.marks:
            first, last = covered(words, mark.start, mark.end)
            if first == last:
                log.add(Drop(DropReason.NO_WORD, place, mark.described(self.text)))
            elif (span := Span(first, last, mark.label)) in spans:  # marked twice, with and without a space
                log.add(Drop(DropReason.OVERLAPS, place, mark.described(self.text)))
            else:
                spans[span] = mark
        return words, spans


def document_of(marked: MarkedText) -> tuple[Document, list[Drop]]:
    """Return a text with its spans in characters, and the spans that were dropped."""
    drops = list(marked.dropped)
    marks: dict[Mark, None] = {}
    rejected: dict[Mark, None] = {}
    for span, bounds in zip(marked.spans, character_bounds(marked), strict=True):
        if isinstance(bounds, DropReason):
            drops.append(span.drop(bounds, marked.text))
        else:
            (rejected if span.rejected else marks)[Mark(*bounds, span.label, span.score)] = None
    predicted = marked.predicted or any(mark.score is not None for mark in marks)
    document = Document(
        marked.text,
        tuple(marks),
        fields=marked.fields,
        predicted=predicted,
        rejected=tuple(rejected),
        annotated=marked.annotated,
    )
    return document, drops
