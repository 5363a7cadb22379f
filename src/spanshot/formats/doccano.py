"""doccano's JSONL exports, of all its versions.

Spans are ``"label": [[0, 4, "city"]]`` (``"labels"`` or ``"entities"`` in old versions), or with relations
``"entities": [{"start_offset": 0, "end_offset": 4, "label": "city"}]``; version 1.5 calls the text ``"data"``.
JavaScript counts the offsets in UTF-16 units, early versions in code points; the export does not say, nor does it
repeat the marked text, so the unit is taken in which the spans are whole words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.dropped import Drop
from spanshot.formats.json_values import Place, kind_of

_KEYS = ("label", "labels", "entities", "annotations")


def fits_doccano(record: dict[str, Any]) -> bool:
    """Whether a record may be doccano's."""
    spans = next((record[key] for key in _KEYS if key in record), None)
    return isinstance(spans, list) and all(map(_is_span, spans))


def marked_by_doccano(records: Iterable[tuple[Place, Any]]) -> Iterator[MarkedText | Drop]:
    """The records' texts. An unmarked one may be unread: doccano does not tell."""
    for place, record in records:
        key = next((key for key in _KEYS if isinstance(record, dict) and key in record), _KEYS[0])
        spans = place.take(record, key, list)
        found = [_span(span, place.within(f"span {number}")) for number, span in enumerate(spans, start=1)]
        yield marked_text(record.get("text", record.get("data")), found, place)


def _is_span(span: Any) -> bool:
    return len(span) == 3 if isinstance(span, list) else isinstance(span, dict) and "start_offset" in span


def _span(span: Any, place: Place) -> CharSpan | Drop:
    if not _is_span(span):
        raise place.error(f"expected [start, end, label] or an object with 'start_offset'; found {kind_of(span)}")
    if isinstance(span, list):
        start, end, label = span
    else:
        start, end, label = span["start_offset"], span.get("end_offset"), span.get("label")
    if type(label) is int:
        raise place.error("the label is a number, not a name; export as JSONL with the labels' texts")
    return char_span(start, end, label, place)
