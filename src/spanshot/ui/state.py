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

    def label_names(self) -> dict[str, str]:
        """Return the name of each label; empty: the label itself."""
        return {label.label: label.name for label in self.labels.values()}

    def thresholds(self) -> dict[str, float]:
        """Return the thresholds of the labels that have one."""
        return {label.label: label.threshold for label in self.labels.values() if label.threshold is not None}

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
        span = checked_span(change, len(text.text), place)
        if not any(span.overlaps(word.start, word.end) for word in text.words):
            raise place.error("a span must hold a word")
        return text, span

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

    def _answer(self, change: Change, place: Place) -> Change | None:
        """Mark or reject a span, or take that back."""
        kind = place.take(change, "do", str)
        text, span = self._span(change, place)
        spans = text.marks if kind.endswith("mark") else text.rejected
        is_added = not kind.startswith("un")
        if (span in spans) is is_added:
            return None
        if is_added:
            self._know(span.label)
            spans.add(span)
        else:
            spans.remove(span)
        self.touched.add(text.number)
        return {**change, "do": f"un{kind}" if is_added else kind.removeprefix("un")}

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
            limit = change["threshold"]
            if limit is not None and (not isinstance(limit, int | float) or not 0 <= limit <= 1):
                raise place.error(f"a threshold must be from 0 to 1; found {limit!r}")
            label.threshold = None if limit is None else float(limit)
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


def checked_span(record: JsonValue, length: int, place: Place) -> Marked:
    """Return the span that a record describes; it must lie within a text of ``length`` characters."""
    fields = place.record(record, "start")
    start, end = place.take(fields, "start", int), place.take(fields, "end", int)
    if not 0 <= start < end <= length:
        raise place.error(f"a span must lie within its text; found {start} to {end} of {length} characters")
    return Marked(start, end, checked_label(fields, place))


def _labels(names: JsonValue, place: Place) -> tuple[str, ...]:
    return tuple(place.check(name, "labels", str) for name in place.check(names, "labels", list))


def _spans(records: JsonValue, length: int, place: Place) -> list[tuple[Marked, float]]:
    spans = []
    for record in place.check(records or [], "marks", list):
        score = place.record(record, "start").get("score")
        span = checked_span(record, length, place)
        spans.append((span, float(score) if isinstance(score, int | float) else 1.0))
    return spans


_CHANGES: dict[str, Callable[[State, Change, Place], Change | None]] = {
    "text": State._add_text,
    "mark": State._answer,
    "unmark": State._answer,
    "reject": State._answer,
    "unreject": State._answer,
    "review": State._review,
    "label": State._label,
    "drop-label": State._drop_label,
    "nested": State._nested,
}
