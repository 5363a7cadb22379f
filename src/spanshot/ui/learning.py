"""The examples of a project: what the model learns from its marks, rejections and reviewed texts."""

from __future__ import annotations

from collections.abc import Iterator

from spanshot.formats.char_spans import CharSpan, MarkedText
from spanshot.formats.documents import Document, Mark
from spanshot.formats.json_values import Place
from spanshot.types import LearnOptions, Sentence, Span, SupportSet
from spanshot.ui.state import Marked, State, Text
from spanshot.words import covered, split_words


def example_of(text: Text, all_labels: frozenset[str] = frozenset()) -> Sentence:
    """Return a text as an example; ``all_labels`` are those of the project.

    Labels count as looked for if they existed when the text was reviewed, or if one of their spans was marked or
    rejected in it. So a text in progress says nothing about other labels.
    """
    edges = [at for span in (*text.marks, *text.rejected) for at in (span.start, span.end)]
    words = split_words(text.words, edges)

    def spans(marked: set[Marked]) -> set[Span]:
        return {Span(*covered(words, span.start, span.end), span.label) for span in marked}

    marked = spans(text.marks)
    labels = annotated_labels(text)
    return Sentence(
        tuple(word.text for word in words),
        tuple(marked),
        text.text,
        tuple((word.start, word.end) for word in words),
        tuple(spans(text.rejected) - marked),
        None if all_labels and all_labels <= set(labels) else labels,
    )


def annotated_labels(text: Text) -> tuple[str, ...]:
    """Return the labels that were looked for in a text."""
    answered = {span.label for span in (*text.marks, *text.rejected)}
    return tuple(sorted(answered | set(text.reviewed or ())))


def support_of(state: State) -> tuple[SupportSet | None, list[int]]:
    """Return the examples of a project, and the numbers of their texts; None without any label."""
    if not state.labels:
        return None, []
    texts = [text for text in state.texts.values() if text.touched]
    labels = frozenset(state.labels)
    support = SupportSet.of([example_of(text, labels) for text in texts], state.label_names())
    return support, [text.number for text in texts]


def options_of(state: State) -> LearnOptions:
    """Return the thresholds and settings of a project."""
    return LearnOptions(nested=state.nested, threshold=state.thresholds() or None)


def document_of(text: Text, *, all_labels: frozenset[str] = frozenset()) -> Document:
    """Return a text with its marks, to export it; the list of its labels is left out if it names all of them."""
    labels = annotated_labels(text)
    return Document(
        text.text,
        tuple(Mark(span.start, span.end, span.label) for span in sorted(text.marks)),
        rejected=tuple(Mark(span.start, span.end, span.label) for span in sorted(text.rejected)),
        annotated=None if not text.touched or all_labels <= set(labels) else labels,
    )


def marked_texts(state: State, name: str) -> Iterator[MarkedText]:
    """Yield the examples of a project as a reader of a format does."""
    labels = frozenset(state.labels)
    for text in state.texts.values():
        if text.touched:
            document = document_of(text, all_labels=labels)
            place = Place(name, None, f"text {text.number}")
            spans = [CharSpan(m.start, m.end, m.label, place) for m in document.marks]
            rejected = [CharSpan(m.start, m.end, m.label, place, rejected=True) for m in document.rejected]
            yield MarkedText(text.text, (*spans, *rejected), place, exact=True, annotated=document.annotated)
