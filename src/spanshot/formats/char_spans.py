"""Text with character spans -> sentences with word spans; what does not fit is left out with a reason."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spanshot.formats.dropped import Drop, DropReason
from spanshot.formats.files import MAX_WORDS
from spanshot.formats.json_values import Place
from spanshot.formats.offsets import CHARACTERS, units_of
from spanshot.types import OUTSIDE, Sentence, Span
from spanshot.words import Word, words_of

Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CharSpan:
    """Characters ``start`` up to but not including ``end``, as some tool counts them, and what they are called."""

    start: int
    end: int
    label: str
    place: Place
    surface: str | None = None
    """The marked text as the tool gives it, if it does: what the offsets are checked against."""

    def drop(self, reason: DropReason, text: str) -> Drop:
        """This span as one that is left out."""
        marked = text[max(self.start, 0) : max(self.end, 0)] if self.surface is None else self.surface
        return Drop(reason, str(self.place), f"{_short(marked)} ({_short(self.label, quote=False)})")


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text and what is marked in it, as read from a file."""

    text: str
    spans: tuple[CharSpan, ...]
    place: Place
    dropped: tuple[Drop, ...] = ()
    exact: bool = False
    """Offsets are code points for certain; otherwise the unit is found out by what fits."""
    by_line: bool = False
    """Every line is an example of its own, unless a span crosses its end."""


def marked_text(
    text: Any, found: Iterable[CharSpan | Drop], place: Place, *, exact: bool = False, by_line: bool = False
) -> MarkedText | Drop:
    """A text with what a reader found marked in it; a drop if there is no text."""
    if text is None or not place.check(text, "text", str).strip():
        return Drop(DropReason.NO_TEXT, str(place))
    found = list(found)
    spans = tuple(item for item in found if isinstance(item, CharSpan))
    return MarkedText(text, spans, place, tuple(item for item in found if isinstance(item, Drop)), exact, by_line)


def char_span(start: Any, end: Any, label: Any, place: Place, surface: Any = None) -> CharSpan | Drop:
    """A checked span; a drop if it has no label, or one that means "no entity"."""
    place.check(start, "start", int)
    place.check(end, "end", int)
    name = "" if label is None else place.check(label, "label", str).strip()
    surface = surface if isinstance(surface, str) else None
    span = CharSpan(start, end, name, place, surface)
    if name in {"", OUTSIDE}:
        return Drop(DropReason.NO_LABEL, str(place), _short(surface) if surface else f"{start}..{end}")
    return span


def sentences_of(marked: MarkedText) -> tuple[list[Sentence], list[Drop]]:
    """The text as one sentence, or as several if it is read by line or very long; and what was left out.

    >>> place = Place("example 1")
    >>> spans = (CharSpan(2, 7, "city", place), CharSpan(4, 7, "city", place))
    >>> sentences, drops = sentences_of(MarkedText("in Oslo", spans, place))
    >>> sentences
    [Sentence(words=('in', 'Oslo'), spans=(Span(start=1, end=2, label='city'),))]
    >>> [str(drop) for drop in drops]
    ["example 1 'slo' (city)"]
    """
    words = words_of(marked.text)
    drops = list(marked.dropped)
    if not words:
        return [], [*drops, Drop(DropReason.NO_TEXT, str(marked.place))]
    spans = []
    for span, found in zip(marked.spans, _found(marked, words), strict=True):
        if isinstance(found, DropReason):
            drops.append(span.drop(found, marked.text))
        else:
            spans.append(Span(*found, span.label))
    cuts = _line_starts(marked.text, words, spans) if marked.by_line or len(words) > MAX_WORDS else []
    sentences = []
    for start, end in pairwise([0, *cuts, len(words)]):
        if end - start > MAX_WORDS:
            drops.append(Drop(DropReason.TOO_LONG, str(marked.place)))
            continue
        own = tuple(Span(s.start - start, s.end - start, s.label) for s in spans if start <= s.start and s.end <= end)
        sentences.append(Sentence.of_text(marked.text[words[start].start : words[end - 1].end], own))
    return sentences, drops


def _found(marked: MarkedText, words: list[Word]) -> list[Bounds | DropReason]:
    """For each span its words, or why it has none.

    All offsets of a text are taken to be in one unit: the one that most spans fit, code points if several do. A span
    whose text is known may still be in another, since that it is found there cannot be chance.
    """
    if not marked.spans:
        return []
    units = units_of(marked.text)
    starts, ends = [word.start for word in words], [word.end for word in words]
    tried = []
    for unit in units:
        positions = unit.positions(marked.text)
        tried.append([_words_under(span, marked.text, positions, starts, ends) for span in marked.spans])
    fitting = [sum(isinstance(found, tuple) for found in column) for column in tried]
    best = units.index(CHARACTERS) if marked.exact else fitting.index(max(fitting))
    results = []
    for span, first, *others in zip(marked.spans, tried[best], *tried, strict=True):
        result = first
        if isinstance(first, DropReason) and span.surface is not None:
            result = next((found for found in others if isinstance(found, tuple)), first)
        results.append(result)
    return results


def _words_under(
    span: CharSpan, text: str, positions: dict[int, int], starts: Sequence[int], ends: Sequence[int]
) -> Bounds | DropReason:
    start, end = positions.get(span.start), positions.get(span.end)
    if start is None or end is None:
        return DropReason.OUTSIDE_TEXT
    if span.surface is not None and _visible(text[start:end]) != _visible(span.surface):
        return DropReason.MISMATCH
    first, last = bisect_right(ends, start), bisect_left(starts, end)
    if first >= last:
        return DropReason.NO_WORD
    if starts[first] < start or end < ends[last - 1]:
        return DropReason.INSIDE_WORD
    return first, last


def _visible(text: str) -> str:
    """Without white space: tools write the end of a line as a space, or leave it out."""
    return "".join(text.split())


def _line_starts(text: str, words: list[Word], spans: list[Span]) -> list[int]:
    """The words that begin a line and are not inside a span."""
    crossed = {position for span in spans for position in range(span.start + 1, span.end)}
    gaps = enumerate(pairwise(words), start=1)
    return [n for n, (before, after) in gaps if "\n" in text[before.end : after.start] and n not in crossed]


def _short(text: str, most: int = 30, *, quote: bool = True) -> str:
    shown = text if len(text) <= most else f"{text[: most - 1]}…"
    return repr(shown) if quote else repr(shown)[1:-1]
