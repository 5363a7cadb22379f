"""The state of a project: texts, marks, rejections and labels, as a fold over small changes that can be inverted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from spanshot.errors import DataError
from spanshot.formats.json_values import JsonObject, JsonValue, Place
from spanshot.types import OUTSIDE
from spanshot.words import Word, words_of

Change = JsonObject
"""A change: ``{"do": "mark", "text": 3, "start": 0, "end": 4, "label": "city"}``."""
COLORS = 10
"""Number of colours that labels take in turn."""


@dataclass(frozen=True, slots=True, order=True)
class Marked:
    """Characters ``start`` up to but not including ``end`` of a text, and their label."""

    start: int
    end: int
    label: str

    def overlaps(self, start: int, end: int) -> bool:
        """Return whether the span shares a character with ``start..end``."""
        return self.start < end and start < self.end


@dataclass
class Text:
    """A text, its annotation, and the suggestions that came with it."""

    number: int
    text: str
    source: str = ""
    marks: set[Marked] = field(default_factory=set)
    rejected: set[Marked] = field(default_factory=set)
    imported: tuple[tuple[Marked, float], ...] = ()
    """Predictions that were read from a file, with their scores."""
    reviewed: tuple[str, ...] | None = None
    """The labels that existed when the text was reviewed; None if it was not."""

    @cached_property
    def words(self) -> list[Word]:
        """The words of the text."""
        return words_of(self.text)

    @property
    def touched(self) -> bool:
        """Whether the text is an example: it was reviewed, or something is marked or rejected in it."""
        return self.reviewed is not None or bool(self.marks) or bool(self.rejected)


@dataclass
class Label:
    """A label and how it is shown and found."""

    label: str
    color: int
    name: str = ""
    """A readable name or description, which the model reads; empty: the label itself."""
    threshold: float | None = None


class State:
    """Texts and labels. `apply` changes them and returns the change that takes it back."""

    def __init__(self) -> None:
        self.texts: dict[int, Text] = {}
        self.labels: dict[str, Label] = {}
        self.nested = False
        self.touched: set[int] = set()
        """Texts that changed since the set was last emptied."""

    def apply(self, change: Change) -> Change | None:
        """Apply a change and return its inverse; None if it changes nothing."""
        place = Place("action")
        kind = place.take(change, "do", str)
        if kind not in _CHANGES:
            raise DataError(f"unknown change {kind[:40]!r}")
        return _CHANGES[kind](self, change, place)

    def text(self, change: Change, place: Place) -> Text:
        """Return the text that a change names."""
        number = place.take(change, "text", int)
        if number not in self.texts:
            raise place.error(f"there is no text {number}")
        return self.texts[number]

    def _span(self, change: Change, place: Place) -> tuple[Text, Marked]:
        text = self.text(change, place)
        start, end = place.take(change, "start", int), place.take(change, "end", int)
        if not 0 <= start < end <= len(text.text):
            raise place.error(f"a span must lie within its text; found {start} to {end} of {len(text.text)} characters")
        if not any(word.start < end and start < word.end for word in text.words):
            raise place.error("a span must hold a word")
        return text, Marked(start, end, checked_label(change, place))

    def _add_text(self, change: Change, place: Place) -> Change | None:
        number, content = len(self.texts) + 1, place.take(change, "text", str)
        text = Text(number, content, str(change.get("source") or ""))
        spans = {key: _spans(change.get(key), len(content), place) for key in ("marks", "rejected", "suggested")}
        text.marks = {span for span, _ in spans["marks"]}
        text.rejected = {span for span, _ in spans["rejected"]} - text.marks
        text.imported = tuple(spans["suggested"])
        for key in ("marks", "rejected", "suggested"):
            for span, _ in spans[key]:
                self._know(span.label)
        if change.get("reviewed") is not None:
            text.reviewed = _labels(change["reviewed"], place)
        self.texts[number] = text
        self.touched.add(number)
        return None  # texts are never removed: undo takes back annotations only

    def _mark(self, change: Change, place: Place) -> Change | None:
        text, span = self._span(change, place)
        if span in text.marks:
            return None
        self._know(span.label)
        text.marks.add(span)
        self.touched.add(text.number)
        return {**change, "do": "unmark"}

    def _unmark(self, change: Change, place: Place) -> Change | None:
        text, span = self._span(change, place)
        if span not in text.marks:
            return None
        text.marks.remove(span)
        self.touched.add(text.number)
        return {**change, "do": "mark"}

    def _reject(self, change: Change, place: Place) -> Change | None:
        text, span = self._span(change, place)
        if span in text.rejected:
            return None
        self._know(span.label)
        text.rejected.add(span)
        self.touched.add(text.number)
        return {**change, "do": "unreject"}

    def _unreject(self, change: Change, place: Place) -> Change | None:
        text, span = self._span(change, place)
        if span not in text.rejected:
            return None
        text.rejected.remove(span)
        self.touched.add(text.number)
        return {**change, "do": "reject"}

    def _review(self, change: Change, place: Place) -> Change | None:
        text = self.text(change, place)
        before = text.reviewed
        labels = change.get("labels")
        after = None if labels is None else _labels(labels, place)
        if before == after:
            return None
        text.reviewed = after
        self.touched.add(text.number)
        return {"do": "review", "text": text.number, "labels": None if before is None else list(before)}

    def _label(self, change: Change, place: Place) -> Change | None:
        """Add a label, or change its name, colour or threshold."""
        name = checked_label(change, place)
        known = self.labels.get(name)
        before: Change = {"do": "drop-label", "label": name} if known is None else label_change(known)
        label = known or Label(name, len(self.labels) % COLORS)
        if "name" in change:
            label.name = " ".join(place.take(change, "name", str).split())
        if "color" in change:
            label.color = place.take(change, "color", int) % COLORS
        if "threshold" in change:
            value = change["threshold"]
            if value is not None and (not isinstance(value, int | float) or not 0 <= value <= 1):
                raise place.error(f"a threshold must be from 0 to 1; found {value!r}")
            label.threshold = None if value is None else float(value)
        self.labels[name] = label
        return before if before != label_change(label) else None

    def _drop_label(self, change: Change, place: Place) -> Change | None:
        name = checked_label(change, place)
        label = self.labels.get(name)
        if label is None:
            return None
        if any(span.label == name for text in self.texts.values() for span in text.marks):
            raise place.error(f"the label {name!r} is in use; delete its marks first")
        del self.labels[name]
        return label_change(label)

    def _nested(self, change: Change, place: Place) -> Change | None:
        del place
        before, self.nested = self.nested, bool(change.get("value"))
        return {"do": "nested", "value": before} if before != self.nested else None

    def _know(self, label: str) -> None:
        if label not in self.labels:
            self.labels[label] = Label(label, len(self.labels) % COLORS)


def label_change(label: Label) -> Change:
    """Return the change that gives a label its present settings."""
    return {
        "do": "label",
        "label": label.label,
        "name": label.name,
        "color": label.color,
        "threshold": label.threshold,
    }


def checked_label(change: Change, place: Place) -> str:
    """Return the label that a change names."""
    label = place.take(change, "label", str)
    if not label.strip() or label != label.strip() or label == OUTSIDE or len(label) > 200:
        raise place.error(f"a label must be a name other than {OUTSIDE!r}, without spaces around it; found {label!r}")
    return label


def _labels(value: JsonValue, place: Place) -> tuple[str, ...]:
    return tuple(place.check(label, "labels", str) for label in place.check(value, "labels", list))


def _spans(value: JsonValue, length: int, place: Place) -> list[tuple[Marked, float]]:
    spans = []
    for item in place.check(value or [], "marks", list):
        fields = place.record(item, "start")
        start, end = place.take(fields, "start", int), place.take(fields, "end", int)
        if not 0 <= start < end <= length:
            raise place.error(f"a span must lie within its text; found {start} to {end} of {length} characters")
        score = fields.get("score")
        span = Marked(start, end, checked_label(fields, place))
        spans.append((span, float(score) if isinstance(score, int | float) else 1.0))
    return spans


_CHANGES: dict[str, Callable[[State, Change, Place], Change | None]] = {
    "text": State._add_text,
    "mark": State._mark,
    "unmark": State._unmark,
    "reject": State._reject,
    "unreject": State._unreject,
    "review": State._review,
    "label": State._label,
    "drop-label": State._drop_label,
    "nested": State._nested,
}
