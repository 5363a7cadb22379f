"""A project: texts that are annotated step by step. Each step is on the disk before its method returns.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> project = Project.open(Path(folder.name) / "trips.spanshot.jsonl")
>>> project.add_texts([Document("to Oslo"), Document("Oslo is cold")])
[1, 2]
>>> project.mark(1, 3, 7, "city")
>>> project.mark_all(1, 3, 7, "city")
1
>>> project.undo(), project.undo(), project.undo()
('mark all', 'mark', None)
>>> project.close(); folder.cleanup()
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from spanshot.errors import DataError
from spanshot.formats.documents import Document, Mark
from spanshot.formats.json_values import JsonObject, JsonValue, Place
from spanshot.ui.project_file import ProjectFile, read_lines
from spanshot.ui.state import Change, Marked, State, Text
from spanshot.words import is_inside_word, words_of

Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Step:
    """A user's action and the changes that take it back."""

    action: str
    changes: tuple[Change, ...]
    inverse: tuple[Change, ...]


class History:
    """A state with its steps, of which the last can be undone and done again."""

    def __init__(self) -> None:
        self.state = State()
        self.done: list[Step] = []
        self.undone: list[Step] = []
        self.actions = 0
        """Number of steps, undos and redos."""

    def replay(self, record: JsonObject) -> None:
        """Apply a line of a project file."""
        kind = record["do"]
        if kind == "text":
            self.state.apply(record)
        elif kind == "step":
            place = Place("action")
            changes = [place.record(change, "do") for change in place.take(record, "changes", list)]
            self.step(str(record.get("action") or "change"), changes)
        elif kind == "undo":
            self.undo()
        elif kind == "redo":
            self.redo()
        elif kind != "project":
            raise DataError(f"unknown line {str(kind)[:40]!r}; was it written by a newer release?")

    def step(self, action: str, changes: Iterable[Change]) -> Step | None:
        """Apply changes as one step; None if nothing changes. If one cannot be applied, none is."""
        applied, inverse = self._apply(changes)
        if not applied:
            return None
        self.done.append(Step(action, tuple(applied), tuple(reversed(inverse))))
        self.undone.clear()
        self.actions += 1
        return self.done[-1]

    def _apply(self, changes: Iterable[Change]) -> tuple[list[Change], list[Change]]:
        applied: list[Change] = []
        inverse: list[Change] = []
        try:
            for change in changes:
                back = self.state.apply(change)
                if back is not None:
                    applied.append(change)
                    inverse.append(back)
        except DataError:
            for back in reversed(inverse):
                self.state.apply(back)
            raise
        return applied, inverse

    def undo(self) -> str | None:
        """Take back the last step and return its name."""
        return self._move(self.done, self.undone, lambda step: step.inverse)

    def redo(self) -> str | None:
        """Do the last undone step again and return its name."""
        return self._move(self.undone, self.done, lambda step: step.changes)

    def _move(
        self, source: list[Step], target: list[Step], changes_of: Callable[[Step], tuple[Change, ...]]
    ) -> str | None:
        if not source:
            return None
        step = source.pop()
        for change in changes_of(step):
            self.state.apply(change)
        target.append(step)
        self.actions += 1
        return step.action


def read_history(path: Path) -> History:
    """Read a project file, which another process may be writing."""
    history = History()
    _replay(history, path, read_lines(path))
    return history


def _replay(history: History, path: Path, lines: Iterable[tuple[int, JsonObject]]) -> None:
    for number, record in lines:
        try:
            history.replay(record)
        except DataError as error:
            raise DataError.at(path, number, str(error)) from None
    history.state.touched.clear()


class Project:
    """A project file that is open for annotation. Offsets count characters (code points)."""

    def __init__(self, file: ProjectFile, history: History) -> None:
        self.file = file
        self.history = history

    @classmethod
    def open(cls, path: Path) -> Project:
        """Open a project file, or create it."""
        file = ProjectFile(path)
        history = History()
        try:
            _replay(history, path, file.lines)
        except BaseException:
            file.close()
            raise
        return cls(file, history)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    @property
    def state(self) -> State:
        """The texts and labels."""
        return self.history.state

    def text(self, number: int) -> Text:
        """Return the text with that number; an unknown number is an error."""
        return self.state.text({"text": number}, Place("action"))

    def add_texts(self, documents: Iterable[Document], source: str = "") -> list[int]:
        """Add texts with their marks, and return their numbers. Texts without a word are left out.

        Texts with marks count as reviewed for all labels that the documents mark.
        """
        documents = list(documents)
        marks = (mark for d in documents if not d.predicted for mark in (*d.marks, *d.rejected))
        labels = sorted({mark.label for mark in marks})
        records = [text_record(document, source, labels) for document in documents if words_of(document.text)]
        for record in records:
            State().apply(record)  # raises before anything is written
        if records:
            self.file.append(*records)
        before = len(self.state.texts)
        for record in records:
            self.state.apply(record)
        return list(range(before + 1, before + 1 + len(records)))

    def step(self, action: str, changes: Sequence[Change]) -> bool:
        """Apply and save changes as one step that can be undone. Return whether anything changed."""
        undone = list(self.history.undone)
        step = self.history.step(action, changes)
        if step is None:
            return False
        try:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self.file.append({"do": "step", "action": action, "time": now, "changes": list(step.changes)})
        except DataError:
            self.history.undo()
            self.history.undone[:] = undone
            raise
        return True

    def undo(self) -> str | None:
        """Take back the last step and return its name; None if there is none."""
        name = self.history.undo()
        if name is not None:
            self._append("undo", self.history.redo)
        return name

    def redo(self) -> str | None:
        """Do the last undone step again and return its name; None if there is none."""
        name = self.history.redo()
        if name is not None:
            self._append("redo", self.history.undo)
        return name

    def _append(self, kind: str, take_back: Callable[[], object]) -> None:
        try:
            self.file.append({"do": kind})
        except DataError:
            take_back()
            raise

    def mark(self, text: int, start: int, end: int, label: str) -> None:
        """Mark a span. Other labels of exactly this span are removed, unless spans may nest."""
        self.step("mark", list(self._mark(self.text(text), start, end, label)))

    def unmark(self, text: int, start: int, end: int, label: str) -> None:
        """Delete a mark."""
        self.step("delete", [_span_change("unmark", text, start, end, label)])

    def relabel(self, text: int, start: int, end: int, label: str, new: str) -> None:
        """Give a mark another label."""
        unmark = _span_change("unmark", text, start, end, label)
        self.step("change label", [unmark, *self._mark(self.text(text), start, end, new)])

    def resize(self, text: int, start: int, end: int, label: str, new: Bounds) -> None:
        """Move the edges of a mark."""
        unmark = _span_change("unmark", text, start, end, label)
        self.step("resize", [unmark, *self._mark(self.text(text), *new, label)])

    def reject(self, text: int, start: int, end: int, label: str) -> None:
        """Record that a span does not have a label."""
        self.step("reject", list(self._reject(text, start, end, label)))

    def review(self, text: int, accept: Iterable[Marked] = (), reject: Iterable[Marked] = ()) -> None:
        """Mark a text as reviewed, and accept or reject suggestions in the same step."""
        changes: list[Change] = []
        for span in accept:
            changes += self._mark(self.text(text), span.start, span.end, span.label)
        for span in reject:
            changes += self._reject(text, span.start, span.end, span.label)
        new = (str(change["label"]) for change in changes if change["do"] == "label")
        labels: list[JsonValue] = list(dict.fromkeys([*self.state.labels, *new]))
        changes.append({"do": "review", "text": text, "labels": labels})
        self.step("accept sentence" if changes[:-1] else "review", changes)

    def unreview(self, text: int) -> None:
        """Mark a text as not reviewed."""
        self.step("reopen", [{"do": "review", "text": text, "labels": None}])

    def set_label(self, label: str, **settings: JsonValue) -> None:
        """Add a label, or change its ``name``, ``color`` or ``threshold``."""
        self.step("change label settings", [{"do": "label", "label": label, **settings}])

    def set_nested(self, nested: bool) -> None:
        """Allow spans inside spans, or do not."""
        self.step("nested spans", [{"do": "nested", "value": nested}])

    def drop_label(self, label: str) -> None:
        """Remove a label that has no marks."""
        self.step("remove label", [{"do": "drop-label", "label": label}])

    def mark_all(self, text: int, start: int, end: int, label: str) -> int:
        """Mark all occurrences of the words of a span, and return their number.

        Occurrences that touch another mark, that were rejected, or that are part of a word are left out.
        """
        wanted = self.text(text).text[start:end]
        changes = list(self._mark(self.text(text), start, end, label))
        count = 0
        for other in self.state.texts.values():
            for at in occurrences(other.text, wanted):
                span = Marked(*at, label)
                is_free = span not in other.rejected and not any(mark.overlaps(*at) for mark in other.marks)
                if is_free and (other.number, at) != (text, (start, end)):
                    changes.append(_span_change("mark", other.number, *at, label))
                    count += 1
        self.step("mark all", changes)
        return count

    def _reject(self, text: int, start: int, end: int, label: str) -> Iterator[Change]:
        """Yield the changes that reject a span."""
        if label not in self.state.labels:
            yield {"do": "label", "label": label}
        yield _span_change("unmark", text, start, end, label)
        yield _span_change("reject", text, start, end, label)

    def _mark(self, text: Text, start: int, end: int, label: str) -> Iterator[Change]:
        """Yield the changes that mark a span."""
        if label not in self.state.labels:
            yield {"do": "label", "label": label}
        if not self.state.nested:
            for mark in sorted(text.marks):
                if (mark.start, mark.end) == (start, end) and mark.label != label:
                    yield _span_change("unmark", text.number, start, end, mark.label)
        if Marked(start, end, label) in text.rejected:
            yield _span_change("unreject", text.number, start, end, label)
        yield _span_change("mark", text.number, start, end, label)


def occurrences(text: str, wanted: str) -> Iterator[Bounds]:
    """Yield where a text holds the same words, whatever white space stands between them.

    >>> list(occurrences("Oslo, Oslovia and Oslo", "Oslo"))
    [(0, 4), (18, 22)]
    """
    words = wanted.split()
    if not words:
        return
    for match in re.finditer(r"\s+".join(map(re.escape, words)), text):
        if not is_inside_word(text, match.start()) and not is_inside_word(text, match.end()):
            yield match.span()


def text_record(document: Document, source: str = "", labels: Sequence[str] = ()) -> JsonObject:
    """Return the line of a project file that adds a text; ``labels`` are those that its file marks."""
    record: JsonObject = {"do": "text", "text": document.text}
    if source:
        record["source"] = source
    gold = [mark for mark in document.marks if not document.predicted]
    predicted = [mark for mark in document.marks if document.predicted]
    for key, marks in (("marks", gold), ("rejected", document.rejected), ("suggested", predicted)):
        if marks:
            record[key] = [_record(mark) for mark in marks]
    if gold or document.rejected or document.annotated is not None:
        record["reviewed"] = [*sorted(labels if document.annotated is None else document.annotated)]
    return record


def _record(mark: Mark) -> JsonObject:
    record: JsonObject = {"start": mark.start, "end": mark.end, "label": mark.label}
    return record if mark.score is None else {**record, "score": round(mark.score, 4)}


def _span_change(kind: str, text: int, start: int, end: int, label: str) -> Change:
    return {"do": kind, "text": text, "start": start, "end": end, "label": label}
