"""JSON from files, checked as it is taken apart: every complaint says where and what was expected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spanshot.errors import DataError
from spanshot.formats.files import read_text


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file one is: ``dev.jsonl:3: query, sentence 2``. What is in memory has a name for a path."""

    path: Path | str
    line: int | None = None
    inside: str = ""

    def __str__(self) -> str:
        name = self.path.name if isinstance(self.path, Path) else self.path
        where = name if self.line is None else f"{name}:{self.line}"
        return f"{where}, {self.inside}" if self.inside else where

    def within(self, part: str) -> Place:
        """A place one level further in."""
        return replace(self, inside=f"{self.inside}, {part}" if self.inside else part)

    def error(self, problem: str) -> DataError:
        """The problem, with the place in front."""
        return DataError.at(self.path, self.line, f"{self.inside}: {problem}" if self.inside else problem)

    def take(self, record: Any, key: str, kind: type) -> Any:
        """The value of a key, which must be there and of that kind."""
        if not isinstance(record, dict):
            raise self.error(f"found {kind_of(record)}; expected an object with the key {key!r}")
        if key not in record:
            found = ", ".join(map(repr, record)) or "none"
            raise self.error(f"the key {key!r} is missing; found {found}")
        return self.check(record[key], key, kind)

    def check(self, value: Any, key: str, kind: type) -> Any:
        """The value, which must be of that kind; ``key`` is what it is called."""
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(f"the value of {key!r} must be {_KINDS[kind]}; found {kind_of(value)}")
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


def kind_of(value: Any) -> str:
    """What a JSON value is, for messages."""
    return _KINDS[type(value)]


def parse_json(path: Path, text: str, first_line: int = 1) -> Any:
    """One JSON value; malformed text is an error at its line of the file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise DataError.at(
            path,
            line,
            f"malformed JSON at character {error.colno}: {error.msg}; is the file cut off or edited?",
        ) from error
    except RecursionError as error:
        raise DataError.at(path, first_line, "JSON nested too deeply to be read") from error
    except ValueError as error:  # a number of thousands of digits
        raise DataError.at(path, first_line, f"JSON that cannot be read: {error}") from error


def parse_json_lines(path: Path, text: str) -> Iterator[tuple[Place, Any]]:
    """The value of every line that is not blank, and its place."""
    empty = True
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            empty = False
            yield Place(path, number), parse_json(path, line, number)
    if empty:
        raise DataError.at(path, None, "is empty; expected one JSON object a line")


def read_json_lines(path: str | Path) -> Iterator[tuple[Place, Any]]:
    """As ``parse_json_lines``, from a file."""
    path = Path(path)
    return parse_json_lines(path, read_text(path))


def parse_json_records(path: Path, text: str) -> list[tuple[Place, Any]]:
    """The records of one JSON list, of a single JSON object, or of one object a line; each with its place."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    if not text.lstrip().startswith("[") and is_json(first):
        return list(parse_json_lines(path, text))
    whole = parse_json(path, text)
    if isinstance(whole, list):
        return [(Place(path, None, f"record {number}"), record) for number, record in enumerate(whole, start=1)]
    return [(Place(path, 1), whole)]


def is_json(text: str) -> bool:
    """Whether the text is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
