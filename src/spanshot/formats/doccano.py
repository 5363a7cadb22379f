"""doccano's JSONL exports, of all its versions.

Spans are ``"label": [[0, 4, "city"]]`` (``"labels"`` or ``"entities"`` in old versions), or with relations
``"entities": [{"start_offset": 0, "end_offset": 4, "label": "city"}]``; version 1.5 calls the text ``"data"``.
JavaScript counts the offsets in UTF-16 units, early versions in code points. The export neither says which nor repeats
the marked text, so the unit is the one in which the spans are whole words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.json_values import JsonObject, JsonValue, Place, json_line, kind_of

_KEYS = ("label", "labels", "entities", "annotations")
_RESERVED = {*_KEYS, "text", "data", "relations", "Comments"}
"""The keys of doccano itself; it keeps all others as metadata."""


def fits_doccano(record: JsonObject) -> bool:
    """Return whether a record may be doccano's."""
    spans = next((record[key] for key in _KEYS if key in record), None)
    return isinstance(spans, list) and all(map(_is_span, spans))


def read_doccano(records: Iterable[tuple[Place, JsonValue]]) -> Iterator[MarkedText | Drop]:
    """Read the texts of the records. doccano does not say whether an unmarked text was annotated."""
    for place, record in records:
        fields = place.record(record, _KEYS[0])
        key = next((key for key in _KEYS if key in fields), _KEYS[0])
        spans = place.take(fields, key, list)
        items = [_span(span, place.within(f"span {number}")) for number, span in enumerate(spans, start=1)]
        extra = {key: value for key, value in fields.items() if key not in _RESERVED}
        yield marked_text(fields.get("text", fields.get("data")), items, place, fields=extra)


def _is_span(span: JsonValue) -> bool:
    return len(span) == 3 if isinstance(span, list) else isinstance(span, dict) and "start_offset" in span


def _span(span: JsonValue, place: Place) -> CharSpan | Drop:
    if isinstance(span, list) and len(span) == 3:
        start, end, label = span
    elif isinstance(span, dict) and "start_offset" in span:
        start, end, label = span["start_offset"], span.get("end_offset"), span.get("label")
    else:
        raise place.error(f"expected [start, end, label] or an object with 'start_offset'; found {kind_of(span)}")
    if type(label) is int:
        raise place.error("the label is a number, not a name; export as JSONL with the labels' texts")
    return char_span(start, end, label, place)


def render_doccano(document: Document, place: str, log: DropLog) -> str:
    """Return a document as a line of JSON that doccano imports."""
    if conflicts := sorted(_RESERVED & document.fields.keys()):
        log.add(Drop(DropReason.NO_PLACE, f"{place} {', '.join(conflicts)}", item="field"), len(conflicts))
    extra = {key: value for key, value in document.fields.items() if key not in _RESERVED}
    labels: list[JsonValue] = [[mark.start, mark.end, mark.label] for mark in document.marks]
    return json_line({"text": document.text, "label": labels, **extra})
