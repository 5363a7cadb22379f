"""JSON lines: ``{"text": "…", "entities": [{"start": 0, "end": 4, "label": "city"}]}``, in code points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from spanshot.errors import DataError
from spanshot.files import write_text
from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, Dropped
from spanshot.formats.json_values import JsonObject, JsonValue, Place, json_line
from spanshot.types import Sentence

_KEYS = {"text", "entities", "rejected", "annotated"}


def fits_jsonl(record: JsonObject) -> bool:
    """Return whether a record may be in this format."""
    entities = record.get("entities")
    return isinstance(entities, list) and all(isinstance(entity, dict) and "start" in entity for entity in entities)


def read_jsonl(records: Iterable[tuple[Place, JsonValue]]) -> Iterator[MarkedText | Drop]:
    """Read the texts of the records. The ``"text"`` of an entity, if any, is checked against its offsets.

    ``"rejected"`` lists spans whose label was rejected, ``"annotated"`` the labels that were annotated, if not all.
    """
    for place, record in records:
        fields = place.record(record, "entities")
        if "entities" not in fields:
            raise place.error("the key 'entities' is missing; write \"entities\": [] where nothing is marked")
        entities = place.take(fields, "entities", list)
        spans = [_span(entity, place.within(f"entity {number}")) for number, entity in enumerate(entities, start=1)]
        rejected = place.check(fields.get("rejected") or [], "rejected", list)
        for number, entity in enumerate(rejected, start=1):
            span = _span(entity, place.within(f"rejected {number}"))
            spans.append(replace(span, rejected=True) if isinstance(span, CharSpan) else span)
        extra = {key: value for key, value in fields.items() if key not in _KEYS}
        marked = marked_text(fields.get("text"), spans, place, exact=True, fields=extra)
        if isinstance(marked, MarkedText) and fields.get("annotated") is not None:
            labels = [place.check(label, "annotated", str) for label in place.take(fields, "annotated", list)]
            marked = replace(marked, annotated=tuple(labels))
        yield marked


def _span(entity: JsonValue, place: Place) -> CharSpan | Drop:
    fields = place.record(entity, "start")
    start, end = place.take(fields, "start", int), place.take(fields, "end", int)
    return char_span(start, end, fields.get("label"), place, fields.get("text"), fields.get("score"))


def record_of(item: Sentence | Document) -> JsonObject:
    """Return a sentence or a document as a record. Bare words are joined by single spaces.

    >>> from spanshot.types import Span
    >>> record_of(Sentence(("in", "Oslo"), (Span(1, 2, "city"),)))
    {'text': 'in Oslo', 'entities': [{'start': 3, 'end': 7, 'label': 'city'}]}
    """
    document = Document.of(item) if isinstance(item, Sentence) else item
    entities: list[JsonValue] = []
    for mark in document.marks:
        entity: JsonObject = {"start": mark.start, "end": mark.end, "label": mark.label}
        entities.append(entity if mark.score is None else {**entity, "score": mark.score})
    record: JsonObject = {"text": document.text, "entities": entities}
    if document.rejected:
        record["rejected"] = [{"start": m.start, "end": m.end, "label": m.label} for m in document.rejected]
    if document.annotated is not None:
        record["annotated"] = list(document.annotated)
    return {**record, **document.fields}


def render_jsonl(document: Document, place: str, log: DropLog) -> str:
    """Return a document as a line. Nothing is dropped."""
    del place, log
    return json_line(record_of(document))


def write_jsonl(path: str | Path, records: Iterable[Sentence | Mapping[str, JsonValue]]) -> Dropped:
    """Write sentences, or records in this format, one per line. Nothing is dropped."""

    def lines() -> Iterable[str]:
        for number, item in enumerate(records, start=1):
            try:
                yield json_line(record_of(item) if isinstance(item, Sentence) else dict(item))
            except DataError as error:
                raise DataError.at(path, None, f"record {number} cannot be written: {error}") from error

    write_text(path, lines())
    return Dropped()
