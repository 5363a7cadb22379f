"""Prodigy's ``db-out``: JSON lines with ``"text"``, ``"spans"`` and ``"answer"``.

Offsets are counted by Python, in code points. A span may repeat its text, or name its first and last token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from spanshot.formats.char_spans import CharSpan, MarkedText, bounds_text, char_span, marked_text
from spanshot.formats.dropped import Drop, Dropped, DropReason
from spanshot.formats.json_values import JsonObject, JsonValue, Place
from spanshot.formats.marks import marks_of, write_json_lines
from spanshot.types import Sentence

_KEYS = {"answer", "_task_hash", "_input_hash"}
_MAX_SURFACE = 10_000
"""Longest text of a span's tokens that is checked: many long spans would otherwise take quadratic time."""


def fits_prodigy(record: JsonObject) -> bool:
    """Return whether a record may be Prodigy's."""
    spans = record.get("spans")
    return bool(_KEYS & record.keys()) if spans is None else isinstance(spans, list)


def read_prodigy(records: Iterable[tuple[Place, JsonValue]]) -> Iterator[MarkedText | Drop]:
    """Read the texts of accepted records. A record without an answer is accepted; one without spans is unmarked."""
    for place, record in records:
        fields = place.record(record, "text")
        if fields.get("answer", "accept") != "accept":
            yield Drop(DropReason.NOT_ACCEPTED, str(place))
            continue
        spans = place.check(fields.get("spans") or [], "spans", list)
        tokens = _Tokens(fields.get("tokens"))
        items = [_span(span, tokens, place.within(f"span {number}")) for number, span in enumerate(spans, start=1)]
        yield marked_text(fields.get("text"), items, place, exact=True)


class _Tokens:
    """The texts of a record's tokens, joined once, so that each span is a slice."""

    def __init__(self, tokens: JsonValue) -> None:
        items = tokens if isinstance(tokens, list) else []
        texts = [token.get("text") if isinstance(token, dict) else None for token in items]
        token_texts = [text if isinstance(text, str) else "" for text in texts]
        self._text = "".join(token_texts)
        self._starts = [0, *accumulate(map(len, token_texts))]
        self._unknown = [0, *accumulate(not isinstance(text, str) for text in texts)]  # tokens without a text before

    def text(self, first: JsonValue, last: JsonValue) -> str | None:
        """Return the text from the first to the last token (inclusive); None if unknown or very long."""
        if type(first) is not int or type(last) is not int:
            return None
        start, end = max(first, 0), min(last + 1, len(self._starts) - 1)
        if start >= end or self._unknown[start] != self._unknown[end]:
            return None
        length = self._starts[end] - self._starts[start]
        return self._text[self._starts[start] : self._starts[end]] if length <= _MAX_SURFACE else None


def _span(span: JsonValue, tokens: _Tokens, place: Place) -> CharSpan | Drop:
    fields = place.record(span, "start")
    start, end = place.take(fields, "start", int), place.take(fields, "end", int)
    if fields.get("answer", "accept") != "accept":
        return Drop(DropReason.NOT_ACCEPTED, str(place), bounds_text(start, end))
    surface = fields.get("text") or tokens.text(fields.get("token_start"), fields.get("token_end"))
    return char_span(start, end, fields.get("label"), place, surface)


def write_prodigy(path: str | Path, sentences: Iterable[Sentence]) -> Dropped:
    """Write accepted records as ``prodigy db-in`` reads them. Nothing is left out."""
    write_json_lines(path, map(_record, sentences))
    return Dropped()


def _record(sentence: Sentence) -> JsonObject:
    sentence = sentence.with_text()
    text, marks = marks_of(sentence)
    tokens: list[JsonValue] = [
        {"text": word, "start": start, "end": end, "id": position, "ws": text[end : end + 1] == " "}
        for position, (word, (start, end)) in enumerate(zip(sentence.words, sentence.offsets, strict=True))
    ]
    spans: list[JsonValue] = [
        {
            "text": text[mark.start : mark.end],
            "start": mark.start,
            "end": mark.end,
            "token_start": span.start,
            "token_end": span.end - 1,
            "label": mark.label,
        }
        for span, mark in zip(sentence.spans, marks, strict=True)
    ]
    return {"text": text, "tokens": tokens, "spans": spans, "answer": "accept"}
