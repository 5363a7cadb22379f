"""JSON from files, checked as it is taken apart: every complaint says where and what was expected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spanshot.errors import DataError, SpanshotError
from spanshot.formats.files import MAX_WORDS, read_text, too_long
from spanshot.tags import spans_from_tags
from spanshot.types import Sentence, Span


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file one is: ``dev.jsonl:3: query, sentence 2``."""

    path: Path
    line: int | None = None
    inside: str = ""

    def within(self, part: str) -> Place:
        """A place one level further in."""
        return replace(self, inside=f"{self.inside}, {part}" if self.inside else part)

    def error(self, problem: str) -> DataError:
        """The problem, with the place in front."""
        return DataError.at(self.path, self.line, f"{self.inside}: {problem}" if self.inside else problem)

    def take(self, record: Any, key: str, kind: type) -> Any:
        """The value of a key, which must be there and of that kind."""
        if not isinstance(record, dict):
            raise self.error(f"found {_kind(record)}; expected an object with the key {key!r}")
        if key not in record:
            found = ", ".join(map(repr, record)) or "none"
            raise self.error(f"the key {key!r} is missing; found {found}")
        value = record[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(f"the value of {key!r} must be {_KINDS[kind]}; found {_kind(value)}")
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


def _kind(value: Any) -> str:
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


def checked_words(words: Any, place: Place) -> tuple[str, ...]:
    """The words of one sentence: strings, at least one, not more than ``MAX_WORDS``."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise place.error("the words must be a list of strings")
    if not words:
        raise place.error("the sentence is empty; give it a word or take it out")
    if len(words) > MAX_WORDS:
        raise place.error(too_long(len(words)))
    return tuple(words)


def tagged_sentence(words: Any, tags: Any, scheme: str, place: Place) -> Sentence:
    """A sentence from parallel lists of words and tags."""
    words = checked_words(words, place)
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise place.error("the labels must be a list of strings")
    if len(words) != len(tags):
        raise place.error(f"{len(words)} words but {len(tags)} labels; there must be one label for each word")
    try:
        return Sentence(words, spans_from_tags(tags, scheme))
    except SpanshotError as error:
        raise place.error(str(error)) from error


def spanned_sentence(words: Any, spans: list[tuple[Any, Any, Any]], place: Place) -> Sentence:
    """A sentence from words and (start, end, label), which may nest."""
    words = checked_words(words, place)
    for start, end, label in spans:
        if type(start) is not int or type(end) is not int or not isinstance(label, str):
            raise place.error(f"a span must be two word positions and a label; found {[start, end, label]}")
    try:
        return Sentence(words, tuple(Span(*span) for span in spans))
    except SpanshotError as error:
        raise place.error(str(error)) from error
