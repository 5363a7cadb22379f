"""Prodigy's ``db-out``: JSON lines with ``"text"``, ``"spans"`` and ``"answer"``.

Offsets are counted by Python, in code points. A span may repeat its text, or name its first and last token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate

from spanshot.formats.char_spans import CharSpan, MarkedText, bounds_text, char_span, marked_text
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.json_values import JsonObject, JsonValue, Place, json_line

_KEYS = {"answer", "_task_hash", "_input_hash"}
_MAX_SURFACE = 10_000
"""Longest text of a span's tokens that is checked: many long spans would otherwise take quadratic time."""


def fits_prodigy(record: JsonObject) -> bool:
    """Return whether a record may be Prodigy's."""
    spans = record.get("spans")
    return bool(_KEYS & record.keys()) if spans is None else isinstance(spans, list)


def read_prodigy(records: Iterable[tuple[Place, JsonValue]]) -> Iterator[MarkedText | Drop]:
    """Read the texts of accepted records. A record without an answer is accepted; one without spans is unmarked.

    A span with the answer ``reject`` is a rejected span. A rejected record is left out: it says that something is wrong
    with it, but the rest of its text may hold entities that nobody has marked.
    """
    for place, record in records:
        fields = place.record(record, "text")
        if fields.get("answer", "accept") != "accept":
            yield Drop(DropReason.NOT_ACCEPTED, str(place))
            continue
        spans = place.check(fields.get("spans") or [], "spans", list)
        tokens = _Tokens(fields.get("tokens"))
        items = [_span(span, tokens, place.within(f"span {number}")) for number, span in enumerate(spans, start=1)]
        meta = fields.get("meta")
        extra = meta if isinstance(meta, dict) else {}
        predicted = "answer" not in fields
        yield marked_text(fields.get("text"), items, place, exact=True, fields=extra, predicted=predicted)


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
    answer = fields.get("answer", "accept")
    if answer not in ("accept", "reject"):
        return Drop(DropReason.NOT_ACCEPTED, str(place), bounds_text(start, end))
    surface = fields.get("text") or tokens.text(fields.get("token_start"), fields.get("token_end"))
    checked = char_span(start, end, fields.get("label"), place, surface, fields.get("score"))
    return replace(checked, rejected=answer == "reject") if isinstance(checked, CharSpan) else checked


def render_prodigy(document: Document, place: str, log: DropLog) -> str:
    """Return a document as a line of JSON that ``prodigy db-in`` reads; suggestions of a tagger have no answer.

    Prodigy needs the words; they are cut where a mark begins or ends inside them.
    """
    words, spans = document.spans(log, place)
    text = document.text
    tokens: list[JsonValue] = [
        {
            "text": word.text,
            "start": word.start,
            "end": word.end,
            "id": position,
            "ws": text[word.end : word.end + 1] == " ",
        }
        for position, word in enumerate(words)
    ]
    marked: list[JsonValue] = []
    for span, mark in spans.items():
        record: JsonObject = {
            "text": text[mark.start : mark.end],
            "start": mark.start,
            "end": mark.end,
            "token_start": span.start,
            "token_end": span.end - 1,
            "label": mark.label,
        }
        marked.append(record if mark.score is None else {**record, "score": mark.score})
    answer: JsonObject = {} if document.predicted else {"answer": "accept"}
    meta: JsonObject = {"meta": dict(document.fields)} if document.fields else {}
    return json_line({"text": text, "tokens": tokens, "spans": marked, **meta, **answer})
