"""Parse JSON and check the values taken from it. Errors name the place and the expected value."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, TypeAlias, TypeVar

from spanshot.errors import DataError
from spanshot.formats.files import lines_of, read_text
from spanshot.json_text import to_json

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

_Kind = TypeVar("_Kind")
_KEYS_SHOWN = 12
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: ``dev.jsonl:3: query, sentence 2``. Examples in memory have a name instead of a path."""

    path: Path | str
    line: int | None = None
    inside: str = ""

    def __str__(self) -> str:
        name = self.path.name if isinstance(self.path, Path) else self.path
        where = name if self.line is None else f"{name}:{self.line}"
        return f"{where}, {self.inside}" if self.inside else where

    def within(self, part: str) -> Place:
        """Return a place one level further in."""
        return replace(self, inside=f"{self.inside}, {part}" if self.inside else part)

    def error(self, problem: str) -> DataError:
        """Return an error that names the place and the problem."""
        return DataError.at(self.path, self.line, f"{self.inside}: {problem}" if self.inside else problem)

    def take(self, record: JsonValue, key: str, kind: type[_Kind]) -> _Kind:
        """Return the value of a key; it must exist and have the given type."""
        fields = self.record(record, key)
        if key not in fields:
            raise self.error(f"the key {key!r} is missing; found {keys_of(fields)}")
        return self.check(fields[key], key, kind)

    def record(self, value: JsonValue, key: str) -> JsonObject:
        """Return the value, which must be an object; ``key`` is one that is expected in it."""
        if not isinstance(value, dict):
            raise self.error(f"found {kind_of(value)}; expected an object with the key {key!r}")
        return value

    def check(self, value: JsonValue, key: str, kind: type[_Kind]) -> _Kind:
        """Return the value after checking its type, and strings for valid Unicode. ``key`` names it in errors."""
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(f"the value of {key!r} must be {_KINDS[kind]}; found {kind_of(value)}")
        if isinstance(value, str) and (problem := unicode_problem(value)):
            raise self.error(f"the value of {key!r} {problem}")
        return value


_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def kind_of(value: JsonValue) -> str:
    """Return the name of a JSON value's type, for messages."""
    return _KINDS[type(value)]


def keys_of(record: JsonObject) -> str:
    """List the keys of a record, for messages: the first twelve."""
    return ", ".join(repr(key[:40]) for key in list(record)[:_KEYS_SHOWN]) or "none"


def unicode_problem(text: str) -> str:
    """Describe why a string cannot be written as UTF-8; empty for a valid string.

    >>> unicode_problem("caf\\ud800e")
    'has half of a surrogate pair (\\\\ud800) at character 4; remove it'
    """
    if match := _SURROGATE.search(text):
        return f"has half of a surrogate pair (\\u{ord(match[0]):04x}) at character {match.start() + 1}; remove it"
    return ""


class _NotJsonError(ValueError):
    """Something that Python reads but JSON does not allow."""


def _object(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    (double, _), *_ = Counter(key for key, _ in pairs).most_common(1)
    raise _NotJsonError(f"the key {double[:40]!r} occurs twice in one object")


def _no_constant(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def json_line(value: JsonValue) -> str:
    """Return a value as a line of JSON, with its line end."""
    try:
        return f"{to_json(value)}\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"it must be plain JSON: {error}") from error


def parse_json(path: Path | str, text: str, first_line: int = 1) -> JsonValue:
    """Parse one JSON value; malformed text is an error at its line of the file."""
    try:
        value: JsonValue = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _error(path, error, first_line) from error
    return value


def _error(path: Path | str, error: Exception, first_line: int = 1) -> DataError:
    line = error.lineno - 1 if isinstance(error, json.JSONDecodeError) else 0
    return DataError.at(path, first_line + line, _problem(error))


def _problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"malformed JSON at character {error.colno}: {error.msg}; is the file cut off or edited?"
    if isinstance(error, RecursionError):
        return "JSON nested too deeply to be read"
    return f"JSON that cannot be read: {error if isinstance(error, _NotJsonError) else 'a number has too many digits'}"


def parse_json_lines(path: Path | str, text: str) -> Iterator[tuple[Place, JsonValue]]:
    """Yield the place and the value of every line that is not blank."""
    empty = True
    for number, line in lines_of(text):
        if line.strip():
            empty = False
            yield Place(path, number), parse_json(path, line, number)
    if empty:
        raise DataError.at(path, None, "is empty; expected one JSON object per line")


def read_json_lines(path: str | Path) -> Iterator[tuple[Place, JsonValue]]:
    """Yield the place and the value of every line of a file that is not blank."""
    path = Path(path)
    return parse_json_lines(path, read_text(path))


@dataclass(frozen=True, slots=True)
class JsonRecords:
    """The records of a JSON list, of a single JSON object, or of JSON lines; each with its place.

    Each iteration parses the text again, so a large file is never held as values.
    """

    path: Path | str
    text: str

    def __iter__(self) -> Iterator[tuple[Place, JsonValue]]:
        start = _skip_space(self.text, 0)
        if self.text.startswith("[", start):
            return self._of_list(start)
        first = next((line for _, line in lines_of(self.text) if line.strip()), "")
        return parse_json_lines(self.path, self.text) if is_json(first) else self._of_object()

    def _of_object(self) -> Iterator[tuple[Place, JsonValue]]:
        yield Place(self.path, 1), parse_json(self.path, self.text)

    def _of_list(self, start: int) -> Iterator[tuple[Place, JsonValue]]:
        try:
            for number, value in enumerate(_items(self.text, start), start=1):
                yield Place(self.path, None, f"record {number}"), value
        except (ValueError, RecursionError) as error:
            raise _error(self.path, error) from error


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _items(text: str, start: int) -> Iterator[JsonValue]:
    """Yield the items of the JSON list at ``start``, one by one; nothing may follow the list."""
    at = _skip_space(text, start + 1)
    at_end = text.startswith("]", at)
    while not at_end:
        value, at = _DECODER.raw_decode(text, at)
        yield value
        at = _skip_space(text, at)
        at_end = text.startswith("]", at)
        if not at_end:
            if not text.startswith(",", at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _skip_space(text, at + 1)
    if (end := _skip_space(text, at + 1)) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def is_json(text: str) -> bool:
    """Return whether the text is one JSON value."""
    try:
        _DECODER.decode(text)
    except (ValueError, RecursionError):
        return False
    return True
