"""Label Studio's exports JSON (tasks with annotations) and JSON-MIN (one flat record for each annotation).

New versions count code points, old ones UTF-16 units; the marked text stands beside the offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text
from spanshot.formats.dropped import Drop, DropReason
from spanshot.formats.json_values import Place

_LABELS = ("labels", "hypertextlabels", "paragraphlabels")
_ABOUT = {"annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"}


def fits_label_studio(record: dict[str, Any]) -> bool:
    """Whether a record may be a task or an annotation of Label Studio."""
    return "annotation_id" in record or (isinstance(record.get("data"), dict) and _annotations(record) is not None)


def marked_by_label_studio(records: Iterable[tuple[Place, Any]]) -> Iterator[MarkedText | Drop]:
    """One text for each task: by its ground truth, else by its newest annotation. Predictions are not read."""
    seen = set()
    for place, record in records:
        if isinstance(record, dict) and "annotation_id" in record and not isinstance(record.get("data"), dict):
            task = str(record.get("id"))
            if record["annotation_id"] is None:
                yield Drop(DropReason.NOT_ANNOTATED, str(place))
            elif task in seen and "id" in record:  # the newest comes first
                yield Drop(DropReason.ANNOTATED_AGAIN, str(place))
            else:
                seen.add(task)
                yield _marked_by_min(record, place)
        else:
            yield from _marked_by_task(record, place)


def _marked_by_task(record: Any, place: Place) -> Iterator[MarkedText | Drop]:
    data = place.take(record, "data", dict)
    annotations = place.check(_annotations(record), "annotations", list)
    for annotation in annotations:
        place.take(annotation, "result", list)
    used = [one for one in annotations if not one.get("was_cancelled") and not one.get("skipped")]
    if not used:
        yield Drop(DropReason.NOT_ACCEPTED if annotations else DropReason.NOT_ANNOTATED, str(place))
        return
    chosen = max(used, key=lambda one: (bool(one.get("ground_truth")), str(one.get("created_at") or "")))
    yield from (Drop(DropReason.ANNOTATED_AGAIN, str(place)) for one in used if one is not chosen)
    found: list[CharSpan | Drop] = []
    names = []
    for number, result in enumerate(chosen["result"], start=1):
        inside = place.within(f"result {number}")
        if inside.take(result, "type", str) in _LABELS:
            names.append(result.get("to_name"))
            found += _spans(inside.take(result, "value", dict), inside)
    yield marked_text(_text(data, names), found, place)


def _marked_by_min(record: dict[str, Any], place: Place) -> MarkedText | Drop:
    found: list[CharSpan | Drop] = []
    for key, values in record.items():
        for number, value in enumerate(values if isinstance(values, list) else [], start=1):
            if isinstance(value, dict) and any(name in value for name in _LABELS):
                found += _spans(value, place.within(f"{key} {number}"))
    return marked_text(_text({key: value for key, value in record.items() if key not in _ABOUT}, []), found, place)


def _annotations(record: dict[str, Any]) -> Any:
    return record.get("annotations", record.get("completions"))  # as versions before 1.0 call them


def _spans(value: dict[str, Any], place: Place) -> Iterator[CharSpan | Drop]:
    """A span for each label of a region."""
    labels = next((value[name] for name in _LABELS if name in value), None) or [None]
    start, end = value.get("start"), value.get("end")
    for label in place.check(labels, "labels", list):
        if isinstance(start, str) or isinstance(end, str):  # a path into HTML, or the turn of a dialogue
            yield Drop(DropReason.NOT_TEXT, str(place), repr(str(value.get("text") or start)[:30]))
        else:
            yield char_span(start, end, label, place, value.get("text"))


def _text(data: dict[str, Any], names: list[Any]) -> str | None:
    """The text among a task's data, whose key the export does not tell: "text", what was labelled, or the longest."""
    for name in ["text", *names]:
        if isinstance(name, str) and isinstance(data.get(name), str):
            return str(data[name])
    return max((value for value in data.values() if isinstance(value, str)), key=len, default=None)
