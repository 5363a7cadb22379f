"""The actions of the page: JSON in, one step of the project."""

from __future__ import annotations

from collections.abc import Callable

from spanshot.errors import DataError
from spanshot.formats.json_values import JsonObject, JsonValue, Place
from spanshot.ui.project import Project
from spanshot.ui.state import Marked

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


def _spans(value: JsonValue) -> list[Marked]:
    items = _PLACE.check(value or [], "spans", list)
    fields = (_PLACE.record(item, "start") for item in items)
    return [
        Marked(_PLACE.take(own, "start", int), _PLACE.take(own, "end", int), _PLACE.take(own, "label", str))
        for own in fields
    ]


def _mark_all(project: Project, action: JsonObject) -> str:
    count = project.mark_all(*_span(action))
    return f"Marked {count} more" if count else "No other occurrences"


def _resize(project: Project, action: JsonObject) -> None:
    new = _PLACE.take(action, "new_start", int), _PLACE.take(action, "new_end", int)
    project.resize(*_span(action), new)


def _review(project: Project, action: JsonObject) -> None:
    project.review(_PLACE.take(action, "text", int), _spans(action.get("accept")), _spans(action.get("reject")))


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
    "nested": lambda project, action: _set_nested(project, action),
    "undo": _undo,
    "redo": _redo,
}


def _set_nested(project: Project, action: JsonObject) -> None:
    project.step("nested spans", [{"do": "nested", "value": bool(action.get("value"))}])
