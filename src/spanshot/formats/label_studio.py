"""Label Studio's exports JSON (tasks with annotations) and JSON-MIN (one flat record for each annotation).

New versions count code points, old ones UTF-16 units. The marked text is repeated beside the offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from spanshot.files import write_text
from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text, short
from spanshot.formats.dropped import Drop, Dropped, DropReason
from spanshot.formats.json_values import JsonObject, JsonValue, Place, json_line
from spanshot.formats.marks import marks_of
from spanshot.types import Sentence

_LABELS = ("labels", "hypertextlabels", "paragraphlabels")
_ABOUT = {"annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"}


def fits_label_studio(record: JsonObject) -> bool:
    """Return whether a record may be a task or an annotation of Label Studio."""
    return "annotation_id" in record or (isinstance(record.get("data"), dict) and _annotations(record) is not None)


def read_label_studio(records: Iterable[tuple[Place, JsonValue]]) -> Iterator[MarkedText | Drop]:
    """Read one text for each task, with its ground truth or its newest annotation. Predictions are not read."""
    tasks: set[int | float | str] = set()
    for place, record in records:
        fields = place.record(record, "data")
        if "annotation_id" not in fields or isinstance(fields.get("data"), dict):
            yield from _of_task(fields, place)
            continue
        task = fields.get("id")
        if fields["annotation_id"] is None:
            yield Drop(DropReason.NOT_ANNOTATED, str(place))
        elif isinstance(task, int | float | str) and task in tasks:  # the newest comes first
            yield Drop(DropReason.ANNOTATED_AGAIN, str(place))
        else:
            if isinstance(task, int | float | str):
                tasks.add(task)
            yield _of_flat(fields, place)


def _of_task(record: JsonObject, place: Place) -> Iterator[MarkedText | Drop]:
    data = place.take(record, "data", dict)
    annotations = place.check(_annotations(record), "annotations", list)
    for annotation in annotations:
        place.take(annotation, "result", list)
    used = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    used = [annotation for annotation in used if not annotation.get("skipped")]
    if not used:
        yield Drop(DropReason.NOT_ACCEPTED if annotations else DropReason.NOT_ANNOTATED, str(place))
        return
    chosen = max(used, key=_rank)
    yield from (Drop(DropReason.ANNOTATED_AGAIN, str(place)) for annotation in used if annotation is not chosen)
    items: list[CharSpan | Drop] = []
    names: list[JsonValue] = []
    for number, result in enumerate(chosen["result"], start=1):
        inside = place.within(f"result {number}")
        if inside.take(result, "type", str) in _LABELS:
            names.append(result.get("to_name"))
            items += _spans(inside.take(result, "value", dict), inside)
    yield marked_text(_text(data, names), items, place)


def _rank(annotation: JsonObject) -> tuple[bool, str]:
    """Rank annotations of one task: the ground truth first, then the newest."""
    created = annotation.get("created_at")
    return bool(annotation.get("ground_truth")), str(created) if isinstance(created, int | float | str) else ""


def _of_flat(record: JsonObject, place: Place) -> MarkedText | Drop:
    items: list[CharSpan | Drop] = []
    for key, values in record.items():
        for number, value in enumerate(values if isinstance(values, list) else [], start=1):
            if isinstance(value, dict) and any(name in value for name in _LABELS):
                items += _spans(value, place.within(f"{short(key, quote=False)} {number}"))
    return marked_text(_text({key: value for key, value in record.items() if key not in _ABOUT}, []), items, place)


def _annotations(record: JsonObject) -> JsonValue:
    return record.get("annotations", record.get("completions"))  # the name before version 1.0


def _spans(value: JsonObject, place: Place) -> Iterator[CharSpan | Drop]:
    """Yield a span for each label of a region."""
    labels = next((value[name] for name in _LABELS if name in value), None) or [None]
    start, end, surface = value.get("start"), value.get("end"), value.get("text")
    for label in place.check(labels, "labels", list):
        if isinstance(start, str) or isinstance(end, str):  # a path into HTML, or the turn of a dialogue
            content = surface or start
            yield Drop(DropReason.NOT_TEXT, str(place), short(content) if isinstance(content, str) else "a region")
        else:
            yield char_span(start, end, label, place, surface)


def _text(data: JsonObject, names: Iterable[JsonValue]) -> str | None:
    """Return the text of a task. The export does not name its key: "text", the labelled one, or the longest."""
    for name in ["text", *names]:
        if isinstance(name, str) and isinstance(value := data.get(name), str):
            return value
    return max((value for value in data.values() if isinstance(value, str)), key=len, default=None)


def write_label_studio(path: str | Path, sentences: Iterable[Sentence]) -> Dropped:
    """Write a list of annotated tasks that Label Studio imports. Nothing is left out."""

    def parts() -> Iterator[str]:
        yield "["
        for number, sentence in enumerate(sentences, start=1):
            yield "\n" if number == 1 else ",\n"
            yield json_line(_record(sentence, number)).rstrip("\n")
        yield "\n]\n"

    write_text(path, parts())
    return Dropped()


def _record(sentence: Sentence, number: int) -> JsonObject:
    text, marks = marks_of(sentence)
    results: list[JsonValue] = [
        {
            "id": f"{number}-{position}",
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "value": {
                "start": mark.start,
                "end": mark.end,
                "text": text[mark.start : mark.end],
                "labels": [mark.label],
            },
        }
        for position, mark in enumerate(marks, start=1)
    ]
    return {"id": number, "data": {"text": text}, "annotations": [{"result": results}]}
