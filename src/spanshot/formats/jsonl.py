"""Our own JSON lines: ``{"text": "…", "entities": [{"start": 0, "end": 4, "label": "city"}]}``, in code points."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spanshot.files import write_text
from spanshot.formats.char_spans import MarkedText, char_span, marked_text
from spanshot.formats.dropped import Drop
from spanshot.formats.json_values import Place
from spanshot.types import Sentence


def fits_jsonl(record: dict[str, Any]) -> bool:
    """Whether a record may be one of ours."""
    entities = record.get("entities")
    return isinstance(entities, list) and all(isinstance(entity, dict) and "start" in entity for entity in entities)


def marked_by_jsonl(records: Iterable[tuple[Place, Any]]) -> Iterator[MarkedText | Drop]:
    """The records' texts. An entity's own ``"text"``, if it has one, is checked against its offsets."""
    for place, record in records:
        if isinstance(record, dict) and "entities" not in record:
            raise place.error("the key 'entities' is missing; write \"entities\": [] where nothing is marked")
        found = []
        for number, entity in enumerate(place.take(record, "entities", list), start=1):
            inside = place.within(f"entity {number}")
            start, end = inside.take(entity, "start", int), inside.take(entity, "end", int)
            found.append(char_span(start, end, entity.get("label"), inside, entity.get("text")))
        yield marked_text(record.get("text"), found, place, exact=True)


def record_of(sentence: Sentence) -> dict[str, Any]:
    """A sentence as a record; its words are parted by single spaces.

    >>> from spanshot.types import Span
    >>> record_of(Sentence(("in", "Oslo"), (Span(1, 2, "city"),)))
    {'text': 'in Oslo', 'entities': [{'start': 3, 'end': 7, 'label': 'city'}]}
    """
    starts = [0]
    for word in sentence.words:
        starts.append(starts[-1] + len(word) + 1)
    entities = [
        {"start": starts[span.start], "end": starts[span.end] - 1, "label": span.label} for span in sentence.spans
    ]
    return {"text": " ".join(sentence.words), "entities": entities}


def write_jsonl(path: str | Path, records: Iterable[Sentence | Mapping[str, Any]]) -> None:
    """Write sentences, or records that already are as ours, one a line."""
    plain = (record_of(record) if isinstance(record, Sentence) else dict(record) for record in records)
    write_text(path, (f"{json.dumps(record, ensure_ascii=False)}\n" for record in plain))
