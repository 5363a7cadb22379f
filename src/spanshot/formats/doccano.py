"""doccano's JSONL exports, of all its versions.

Spans are ``"label": [[0, 4, "city"]]`` (``"labels"`` or ``"entities"`` in old versions), or with relations
``"entities": [{"start_offset": 0, "end_offset": 4, "label": "city"}]``; version 1.5 calls the text ``"data"``.
JavaScript counts the offsets in UTF-16 units, early versions in code points. The export neither says which nor repeats
the marked text, so the unit is the one in which the spans are whole words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.dropped import Drop, Dropped
from spanshot.formats.json_values import JsonObject, JsonValue, Place, kind_of
from spanshot.formats.marks import marks_of, write_json_lines
from spanshot.types import Sentence

_KEYS = ("label", "labels", "entities", "annotations")


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
        yield marked_text(fields.get("text", fields.get("data")), items, place)


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


def write_doccano(path: str | Path, sentences: Iterable[Sentence]) -> Dropped:
    """Write records that doccano imports as JSONL. Nothing is left out."""
    write_json_lines(path, (_record(sentence, number) for number, sentence in enumerate(sentences, start=1)))
    return Dropped()


def _record(sentence: Sentence, number: int) -> JsonObject:
    text, marks = marks_of(sentence)
    return {"id": number, "text": text, "label": [[mark.start, mark.end, mark.label] for mark in marks]}
