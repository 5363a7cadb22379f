"""The actions of the page: JSON in, one step of the project."""

from __future__ import annotations

from collections.abc import Callable

from spanshot.errors import DataError
from spanshot.formats.json_values import JsonObject, Place
from spanshot.ui.project import Project
from spanshot.ui.state import Marked, checked_span

_PLACE = Place("action")


def act(project: Project, action: JsonObject) -> str:
    """Apply an action such as ``{"do": "mark", "text": 1, "start": 3, "end": 7, "label": "city"}``.

    Return what was done, as a short message; empty if there is nothing to say.
    """
    kind = _PLACE.take(action, "do", str)
    if kind not in _ACTIONS:
        raise DataError(f"unknown action {kind[:40]!r}")
    return _ACTIONS[kind](project, action) or ""


def _span(action: JsonObject) -> tuple[int, int, int, str]:
    text, start, end = (_PLACE.take(action, key, int) for key in ("text", "start", "end"))
    return text, start, end, _PLACE.take(action, "label", str)


def _spans(project: Project, action: JsonObject, key: str) -> list[Marked]:
    """Return the spans of the action's text in a list."""
    length = len(project.text(_PLACE.take(action, "text", int)).text)
    return [checked_span(record, length, _PLACE) for record in _PLACE.check(action.get(key) or [], key, list)]


def _mark_all(project: Project, action: JsonObject) -> str:
    count = project.mark_all(*_span(action))
    return f"Marked {count} more" if count else "No other occurrences"


def _resize(project: Project, action: JsonObject) -> None:
    new = _PLACE.take(action, "new_start", int), _PLACE.take(action, "new_end", int)
    project.resize(*_span(action), new)


def _review(project: Project, action: JsonObject) -> None:
    accepted, rejected = _spans(project, action, "accept"), _spans(project, action, "reject")
    project.review(_PLACE.take(action, "text", int), accepted, rejected)


def _label(project: Project, action: JsonObject) -> None:
    settings = {key: action[key] for key in ("name", "color", "threshold") if key in action}
    project.set_label(_PLACE.take(action, "label", str), **settings)


def _undo(project: Project, action: JsonObject) -> str:
    del action
    name = project.undo()
    return f"Undid: {name}" if name else "Nothing to undo"


def _redo(project: Project, action: JsonObject) -> str:
    del action
    name = project.redo()
    return f"Redid: {name}" if name else "Nothing to redo"


_ACTIONS: dict[str, Callable[[Project, JsonObject], str | None]] = {
    "mark": lambda project, action: project.mark(*_span(action)),
    "unmark": lambda project, action: project.unmark(*_span(action)),
    "relabel": lambda project, action: project.relabel(*_span(action), _PLACE.take(action, "new", str)),
    "resize": _resize,
    "reject": lambda project, action: project.reject(*_span(action)),
    "mark-all": _mark_all,
    "review": _review,
    "reopen": lambda project, action: project.unreview(_PLACE.take(action, "text", int)),
    "label": _label,
    "drop-label": lambda project, action: project.drop_label(_PLACE.take(action, "label", str)),
    "nested": lambda project, action: project.set_nested(bool(action.get("value"))),
    "undo": _undo,
    "redo": _redo,
}
