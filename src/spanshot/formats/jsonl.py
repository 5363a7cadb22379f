"""JSON lines: ``{"text": "…", "entities": [{"start": 0, "end": 4, "label": "city"}]}``, in code points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.dropped import Drop, Dropped
from spanshot.formats.json_values import JsonObject, JsonValue, Place
from spanshot.formats.marks import marks_of, write_json_lines
from spanshot.types import Sentence


def fits_jsonl(record: JsonObject) -> bool:
    """Return whether a record may be in this format."""
    entities = record.get("entities")
    return isinstance(entities, list) and all(isinstance(entity, dict) and "start" in entity for entity in entities)


def read_jsonl(records: Iterable[tuple[Place, JsonValue]]) -> Iterator[MarkedText | Drop]:
    """Read the texts of the records. The ``"text"`` of an entity, if any, is checked against its offsets."""
    for place, record in records:
        fields = place.record(record, "entities")
        if "entities" not in fields:
            raise place.error("the key 'entities' is missing; write \"entities\": [] where nothing is marked")
        entities = place.take(fields, "entities", list)
        items = [_span(entity, place.within(f"entity {number}")) for number, entity in enumerate(entities, start=1)]
        yield marked_text(fields.get("text"), items, place, exact=True)


def _span(entity: JsonValue, place: Place) -> CharSpan | Drop:
    fields = place.record(entity, "start")
    start, end = place.take(fields, "start", int), place.take(fields, "end", int)
    return char_span(start, end, fields.get("label"), place, fields.get("text"))


def record_of(sentence: Sentence) -> JsonObject:
    """Return a sentence as a record. Its text is written as it was read; bare words are joined by single spaces.

    >>> from spanshot.types import Span
    >>> record_of(Sentence(("in", "Oslo"), (Span(1, 2, "city"),)))
    {'text': 'in Oslo', 'entities': [{'start': 3, 'end': 7, 'label': 'city'}]}
    """
    text, marks = marks_of(sentence)
    return {"text": text, "entities": [{"start": mark.start, "end": mark.end, "label": mark.label} for mark in marks]}


def write_jsonl(path: str | Path, records: Iterable[Sentence | Mapping[str, JsonValue]]) -> Dropped:
    """Write sentences, or records that are already in this format, one a line. Nothing is left out."""
    write_json_lines(path, (record_of(item) if isinstance(item, Sentence) else dict(item) for item in records))
    return Dropped()
