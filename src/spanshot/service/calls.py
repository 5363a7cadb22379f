"""The requests that a client sends to the service, and how their answers are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypedDict, TypeVar
from urllib.parse import quote

from spanshot.json_text import Fields, JsonObject, JsonValue, to_json
from spanshot.types import Entity, Reason

Answer = TypeVar("Answer")
Example = str | Mapping[str, JsonValue]
Labels = Iterable[str] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """A request, and the function that reads its answer."""

    method: str
    path: str
    read: Callable[[Fields], Answer]
    body: JsonObject | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes | None:
        """Return the body as it is sent."""
        return None if self.body is None else to_json(self.body).encode("utf-8")


class CreateOptions(TypedDict, total=False):
    """Options of a new tagger, all of them optional; see `spanshot.learn`."""

    labels: Labels
    nested: bool
    threshold: float | Mapping[str, float] | None
    precision: float | None


@dataclass(frozen=True, slots=True)
class TaggerPage:
    """Some of the taggers, by name."""

    taggers: list[JsonObject]
    next: str | None
    """The name to start the next page after; None for the last page."""

    @classmethod
    def read(cls, answer: Fields) -> TaggerPage:
        """Read a page from an answer."""
        following = answer.value("next")
        return cls(_records(answer, "taggers"), None if following is None else str(following))


def create(
    name: str,
    examples: Iterable[Example] = (),
    *,
    labels: Labels = (),
    nested: bool = False,
    threshold: float | Mapping[str, float] | None = None,
    precision: float | None = None,
) -> Call[JsonObject]:
    """Return the request that creates a tagger."""
    body: dict[str, JsonValue] = {"name": name, "nested": nested, **_examples(examples, labels)}
    if threshold is not None:
        body["threshold"] = threshold
    if precision is not None:
        body["precision"] = precision
    return Call("POST", "/v1/taggers", _record, body)


def list_taggers(after: str) -> Call[TaggerPage]:
    """Return the request for the page of taggers after a name; the first page is after an empty one."""
    return Call("GET", "/v1/taggers", TaggerPage.read, None, {"after": after} if after else {})


def get_tagger(name: str) -> Call[JsonObject]:
    """Return the request for the settings of a tagger."""
    return Call("GET", _path(name), _record)


def delete(name: str) -> Call[None]:
    """Return the request that deletes a tagger."""
    return Call("DELETE", _path(name), lambda _: None)


def list_examples(name: str) -> Call[list[JsonObject]]:
    """Return the request for the examples of a tagger."""
    return Call("GET", _path(name, "examples"), lambda answer: _records(answer, "examples"))


def add(name: str, examples: Iterable[Example], labels: Labels) -> Call[JsonObject]:
    """Return the request that adds examples and labels."""
    return Call("POST", _path(name, "examples"), _record, _examples(examples, labels))


def remove_example(name: str, example: str) -> Call[JsonObject]:
    """Return the request that removes an example."""
    return Call("DELETE", _path(name, "examples", example), _record)


def remove_label(name: str, label: str) -> Call[JsonObject]:
    """Return the request that removes a label."""
    return Call("DELETE", _path(name, "labels", label), _record)


def restore(name: str, version: int) -> Call[JsonObject]:
    """Return the request that returns to an earlier version."""
    return Call("POST", _path(name, "restore"), _record, {"version": version})


def tag(name: str, text: str, version: int | None, *, explain: bool = False) -> Call[list[Entity]]:
    """Return the request that tags a text."""
    path = _path(name, "explain" if explain else "tag")
    return Call("POST", path, lambda answer: _entities(answer.value("entities")), _versioned({"text": text}, version))


def tag_many(name: str, texts: Sequence[str], version: int | None) -> Call[list[list[Entity]]]:
    """Return the request that tags several texts."""
    body = _versioned({"texts": texts}, version)
    return Call("POST", _path(name, "tag-many"), lambda answer: [*map(_entities, answer.list("results"))], body)


def _path(name: str, *parts: str) -> str:
    return "/".join(["/v1/taggers", *(quote(part, safe="") for part in (name, *parts))])


def _examples(examples: Iterable[Example], labels: Labels) -> dict[str, JsonValue]:
    return {"examples": list(examples), "labels": dict(labels) if isinstance(labels, Mapping) else list(labels)}


def _versioned(body: JsonObject, version: int | None) -> JsonObject:
    return body if version is None else {**body, "version": version}


def _record(answer: Fields) -> JsonObject:
    return answer.record


def _records(answer: Fields, name: str) -> list[JsonObject]:
    return [Fields.of(record).record for record in answer.list(name)]


def _entities(records: JsonValue) -> list[Entity]:
    return [_entity(Fields.of(record)) for record in (records if isinstance(records, list) else [])]


def _entity(fields: Fields) -> Entity:
    text, label = fields.text("text"), fields.text("label")
    start, end = fields.integer("start"), fields.integer("end")
    reasons = _records(fields, "because") if "because" in fields.record else []
    because = tuple(_reason(Fields(reason)) for reason in reasons)
    return Entity(text, label, start, end, fields.number("score"), because)


def _reason(fields: Fields) -> Reason:
    return Reason(fields.text("text"), fields.text("example"), fields.number("weight"), fields.text("kind"))
