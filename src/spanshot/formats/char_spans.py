"""Turn texts with character spans into sentences with word spans. Spans that do not fit are dropped with a reason."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from spanshot.formats.dropped import Drop, DropReason
from spanshot.formats.files import MAX_WORDS
from spanshot.formats.json_values import JsonObject, JsonValue, Place
from spanshot.formats.offsets import CHARACTERS, OffsetTable, VisibleText, units_of
from spanshot.types import OUTSIDE, Sentence, Span
from spanshot.words import Word, split_words, words_of

Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CharSpan:
    """A labelled range of characters, ``end`` exclusive, in the unit of the tool that wrote it."""

    start: int
    end: int
    label: str
    place: Place
    surface: str | None = None
    """The marked text, if the tool repeats it; the offsets are checked against it."""
    score: float | None = None
    """Confidence, if a tagger marked the span."""
    rejected: bool = False
    """The annotator rejected this label for these characters."""

    def drop(self, reason: DropReason, text: str) -> Drop:
        """Return the record of dropping this span."""
        if self.surface is not None:
            return self._drop(reason, self.surface)
        start = max(self.start, 0)
        return self._drop(reason, text[start : max(min(self.end, start + 2 * _MAX_CHARS), 0)])

    def _drop(self, reason: DropReason, marked: str) -> Drop:
        return Drop(reason, str(self.place), f"{short(marked)} ({short(self.label, quote=False)})")


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text and its spans, as read from a file."""

    text: str
    spans: tuple[CharSpan, ...]
    place: Place
    dropped: tuple[Drop, ...] = ()
    exact: bool = False
    """Offsets are code points. Otherwise the unit is guessed: the one that most spans fit."""
    by_line: bool = False
    """Read each line as an example, except where a span crosses a line break."""
    fields: JsonObject = field(default_factory=dict)
    """Other fields of the record."""
    predicted: bool = False
    """The spans come from a tagger, not from an annotator."""
    annotated: tuple[str, ...] | None = None
    """The labels that were annotated (None: all)."""


def marked_text(
    text: JsonValue,
    items: Iterable[CharSpan | Drop],
    place: Place,
    *,
    exact: bool = False,
    by_line: bool = False,
    fields: JsonObject | None = None,
    predicted: bool = False,
) -> MarkedText | Drop:
    """Return a text with its spans, or a `Drop` if there is no text."""
    if text is None or not (checked := place.check(text, "text", str)).strip():
        return Drop(DropReason.NO_TEXT, str(place))
    items = list(items)
    spans = tuple(item for item in items if isinstance(item, CharSpan))
    dropped = tuple(item for item in items if isinstance(item, Drop))
    return MarkedText(checked, spans, place, dropped, exact, by_line, fields or {}, predicted)


def char_span(
    start: JsonValue,
    end: JsonValue,
    label: JsonValue,
    place: Place,
    surface: JsonValue = None,
    score: JsonValue = None,
) -> CharSpan | Drop:
    """Return a checked span, or a `Drop` if its label is missing or means "no entity"."""
    first, last = place.check(start, "start", int), place.check(end, "end", int)
    name = "" if label is None else place.check(label, "label", str).strip()
    marked = surface if isinstance(surface, str) else None
    if name in {"", OUTSIDE}:
        return Drop(DropReason.NO_LABEL, str(place), short(marked) if marked else bounds_text(first, last))
    confidence = None
    if isinstance(score, int | float) and not isinstance(score, bool) and abs(score) < _LARGEST:
        confidence = float(score)
    return CharSpan(first, last, name, place, marked, confidence)


def sentences_of(marked: MarkedText) -> tuple[list[Sentence], list[Drop]]:
    """Return the sentences of a text and the spans that were dropped.

    A text is one sentence unless it is read line by line or is very long. Joining the texts of the sentences restores
    the text. Words are split where a span begins or ends inside them.

    >>> place = Place("example 1")
    >>> spans = (CharSpan(0, 3, "dose", place), CharSpan(4, 9, "unit", place))
    >>> sentences, drops = sentences_of(MarkedText("500mg", spans, place))
    >>> sentences
    [Sentence(words=('500', 'mg'), spans=(Span(start=0, end=1, label='dose'),))]
    >>> [str(drop) for drop in drops]
    ["example 1 'g' (unit)"]
    """
    words = words_of(marked.text)
    drops = list(marked.dropped)
    if not words:
        return [], [*drops, Drop(DropReason.NO_TEXT, str(marked.place))]
    accepted: set[Span] = set()
    rejected: set[Span] = set()
    located = _characters(marked, words)
    words = split_words(words, [at for bounds in located if not isinstance(bounds, DropReason) for at in bounds])
    starts, ends = [word.start for word in words], [word.end for word in words]
    for span, bounds in zip(marked.spans, located, strict=True):
        if isinstance(bounds, DropReason):
            drops.append(span.drop(bounds, marked.text))
        else:
            word_span = Span(bisect_right(ends, bounds[0]), bisect_left(starts, bounds[1]), span.label)
            (rejected if span.rejected else accepted).add(word_span)
    if contradictory := accepted & rejected:
        raise marked.place.error(f"a span is both marked and rejected as {min(contradictory).label!r}")
    spans = sorted(accepted | rejected)
    cuts = _line_starts(marked.text, words, spans) if marked.by_line or len(words) > MAX_WORDS else []
    sentences = []
    next_span, text_start = 0, 0
    for start, end in pairwise([0, *cuts, len(words)]):
        text_end = len(marked.text)
        if end < len(words):
            text_end = marked.text.rindex("\n", words[end - 1].end, words[end].start) + 1
        inside: dict[bool, list[Span]] = {True: [], False: []}  # by whether they are rejected
        while next_span < len(spans) and spans[next_span].end <= end:
            word_span = spans[next_span]
            moved = Span(word_span.start - start, word_span.end - start, word_span.label)
            inside[word_span in rejected].append(moved)
            next_span += 1
        annotated = marked.annotated
        if annotated is not None:
            annotated = (*annotated, *(span.label for span in inside[False]))
        if end - start > MAX_WORDS:
            drops.append(Drop(DropReason.TOO_LONG, str(marked.place)))
        else:
            part = words[start:end]
            sentences.append(
                Sentence(
                    tuple(word.text for word in part),
                    tuple(inside[False]),
                    marked.text[text_start:text_end],
                    tuple((word.start - text_start, word.end - text_start) for word in part),
                    tuple(inside[True]),
                    annotated,
                )
            )
        text_start = text_end
    return sentences, drops


def character_bounds(marked: MarkedText) -> list[Bounds | DropReason]:
    """Return the character range of each span, or the reason why it is dropped."""
    return _characters(marked, words_of(marked.text)) if marked.spans else []


def _characters(marked: MarkedText, words: Sequence[Word]) -> list[Bounds | DropReason]:
    """Return the character range of each span, or the reason why it is dropped.

    All offsets of a text are read in one unit: the one that most spans fit, code points in case of a tie. A span that
    repeats its text may use another unit if the text matches there.
    """
    if not marked.spans:
        return []
    text = marked.text
    visible = VisibleText(text) if any(span.surface is not None for span in marked.spans) else None
    starts, ends = [word.start for word in words], [word.end for word in words]
    # Spans may share a range of characters: look up each range once.
    regions = {(span.start, span.end, span.surface): span for span in marked.spans}
    columns = []
    units = units_of(text)
    for unit in units:
        table = OffsetTable(text, unit)
        by_region = {key: _under(span, table, visible, starts, ends) for key, span in regions.items()}
        columns.append([by_region[span.start, span.end, span.surface] for span in marked.spans])
    fits = [sum(_fits(match) for match in column) for column in columns]
    best = units.index(CHARACTERS) if marked.exact else fits.index(max(fits))
    ranges = []
    for span, preferred, *alternatives in zip(marked.spans, columns[best], *columns, strict=True):
        match = preferred
        if not _fits(preferred) and span.surface is not None:
            match = next((other for other in alternatives if _fits(other)), preferred)
        ranges.append(match.bounds if isinstance(match, _Cut) else match)
    return ranges


@dataclass(frozen=True, slots=True)
class _Cut:
    """The range of a span that begins or ends inside a word."""

    bounds: Bounds


def _fits(match: Bounds | _Cut | DropReason) -> bool:
    return isinstance(match, tuple)


def _under(
    span: CharSpan, table: OffsetTable, visible: VisibleText | None, starts: Sequence[int], ends: Sequence[int]
) -> Bounds | _Cut | DropReason:
    start, end = table.position(span.start), table.position(span.end)
    if start is None or end is None:
        return DropReason.OUTSIDE_TEXT
    if visible and span.surface is not None and not visible.matches(start, end, span.surface):
        return DropReason.MISMATCH
    first, last = bisect_right(ends, start), bisect_left(starts, end)
    if first >= last or start >= end:
        return DropReason.NO_WORD
    if starts[first] < start or end < ends[last - 1]:
        return _Cut((start, end))
    return start, end


def _line_starts(text: str, words: Sequence[Word], spans: Sequence[Span]) -> list[int]:
    """Return the numbers of the words that begin a line outside any span; ``spans`` are sorted."""
    starts = []
    next_span, reach = 0, 0  # spans that begin before the word, and the furthest end among them
    for number, (before, after) in enumerate(pairwise(words), start=1):
        while next_span < len(spans) and spans[next_span].start < number:
            reach = max(reach, spans[next_span].end)
            next_span += 1
        if reach <= number and text.find("\n", before.end, after.start) >= 0:
            starts.append(number)
    return starts


_MAX_CHARS = 30
_LARGEST = 1e300


def short(text: str, *, quote: bool = True) -> str:
    """Shorten a text for a message, on one line."""
    quoted = repr(text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…")
    return quoted if quote else quoted[1:-1]


def bounds_text(start: int, end: int) -> str:
    """Show the offsets of a span in a message.

    >>> bounds_text(3, 7)
    '3..7'
    """
    return f"{start}..{end}" if max(abs(start), abs(end)) < 10**15 else "an enormous offset"
