"""Label Studio's exports JSON (tasks with annotations) and JSON-MIN (one flat record for each annotation).

New versions count code points, old ones UTF-16 units. The marked text is repeated beside the offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spanshot.formats.char_spans import CharSpan, MarkedText, char_span, marked_text, short
from spanshot.formats.documents import Document
from spanshot.formats.dropped import Drop, DropLog, DropReason
from spanshot.formats.json_values import JsonObject, JsonValue, Place, json_line

LABEL, TEXT = "label", "text"
"""The names in the labelling configuration: ``<Labels name="label" toName="text">``."""
_LABELS = ("labels", "hypertextlabels", "paragraphlabels")
_ABOUT = {"annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"}


def fits_label_studio(record: JsonObject) -> bool:
    """Return whether a record may be a task or an annotation of Label Studio."""
    is_task = isinstance(record.get("data"), dict)
    return "annotation_id" in record or (is_task and (_annotations(record) is not None or "predictions" in record))


def read_label_studio(
    records: Iterable[tuple[Place, JsonValue]], *, predictions: bool = False
) -> Iterator[MarkedText | Drop]:
    """Read one text for each task, with its ground truth or its newest annotation.

    With ``predictions``, tasks without annotations are read with their newest prediction.
    """
    tasks: set[int | float | str] = set()
    for place, record in records:
        fields = place.record(record, "data")
        if "annotation_id" not in fields or isinstance(fields.get("data"), dict):
            yield from _of_task(fields, place, predictions=predictions)
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


def _of_task(record: JsonObject, place: Place, *, predictions: bool) -> Iterator[MarkedText | Drop]:
    data = place.take(record, "data", dict)
    annotations_field = _annotations(record)
    predicted = predictions and not annotations_field and bool(record.get("predictions"))
    if annotations_field is None and "predictions" in record:
        annotations_field = []
    annotations = place.check(record["predictions"] if predicted else annotations_field, "annotations", list)
    for annotation in annotations:
        place.take(annotation, "result", list)
    valid = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    valid = [annotation for annotation in valid if not annotation.get("skipped")]
    if not valid:
        yield Drop(DropReason.NOT_ACCEPTED if annotations else DropReason.NOT_ANNOTATED, str(place))
        return
    chosen = max(valid, key=_rank)
    yield from (Drop(DropReason.ANNOTATED_AGAIN, str(place)) for annotation in valid if annotation is not chosen)
    items: list[CharSpan | Drop] = []
    names: list[JsonValue] = []
    for number, result in enumerate(chosen["result"], start=1):
        inside = place.within(f"result {number}")
        if inside.take(result, "type", str) in _LABELS:
            names.append(result.get("to_name"))
            items += _spans(inside.take(result, "value", dict), inside, result.get("score"))
    key = _text_key(data, names)
    extra = {name: value for name, value in data.items() if name != key}
    yield marked_text(data.get(key), items, place, fields=extra, predicted=predicted)


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
    data = {key: value for key, value in record.items() if key not in _ABOUT}
    return marked_text(data.get(_text_key(data, [])), items, place)


def _annotations(record: JsonObject) -> JsonValue:
    return record.get("annotations", record.get("completions"))  # the name before version 1.0


def _spans(value: JsonObject, place: Place, score: JsonValue = None) -> Iterator[CharSpan | Drop]:
    """Yield a span for each label of a region."""
    labels = next((value[name] for name in _LABELS if name in value), None) or [None]
    start, end, surface = value.get("start"), value.get("end"), value.get("text")
    for label in place.check(labels, "labels", list):
        if isinstance(start, str) or isinstance(end, str):  # a path into HTML, or the turn of a dialogue
            content = surface or start
            yield Drop(DropReason.NOT_TEXT, str(place), short(content) if isinstance(content, str) else "a region")
        else:
            yield char_span(start, end, label, place, surface, score)


def _text_key(data: JsonObject, names: Iterable[JsonValue]) -> str:
    """Return the key of a task's text. The export does not name it: "text", the labelled one, or the longest."""
    for name in [TEXT, *names]:
        if isinstance(name, str) and isinstance(data.get(name), str):
            return name
    lengths = {key: len(value) for key, value in data.items() if isinstance(value, str)}
    return max(lengths, key=lambda key: lengths[key], default=TEXT)


def render_label_studio(document: Document, place: str, log: DropLog) -> str:
    """Return a document as a task: suggestions of a tagger as a prediction, other marks as an annotation."""
    if TEXT in document.fields:
        log.add(Drop(DropReason.NO_PLACE, f"{place} {TEXT}", item="field"))
    results: list[JsonValue] = []
    for number, mark in enumerate(document.marks, start=1):
        result: JsonObject = {
            "id": f"span{number}",
            "from_name": LABEL,
            "to_name": TEXT,
            "type": "labels",
            "value": {
                "start": mark.start,
                "end": mark.end,
                "text": document.text[mark.start : mark.end],
                "labels": [mark.label],
            },
        }
        results.append(result if mark.score is None else {**result, "score": mark.score})
    task: JsonObject = {"data": {**document.fields, TEXT: document.text}}
    if not document.predicted:
        return json_line({**task, "annotations": [{"result": results}]}).rstrip("\n")
    prediction: JsonObject = {"model_version": "spanshot", "result": results}
    scores = [mark.score for mark in document.marks if mark.score is not None]
    if scores:  # Label Studio sorts tasks by it, to have the least certain ones annotated first
        prediction["score"] = sum(scores) / len(scores)
    return json_line({**task, "predictions": [prediction]}).rstrip("\n")
