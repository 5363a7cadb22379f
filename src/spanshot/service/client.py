"""A Python client of the service: `Client`, and `AsyncClient` for programs on asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Self
from urllib.parse import quote

from spanshot.errors import SpanshotError
from spanshot.json_text import Fields, JsonObject, JsonValue, to_json
from spanshot.optional import missing
from spanshot.types import Entity, Reason

try:
    import httpx
except ModuleNotFoundError:
    raise missing("httpx", "client") from None

Example = str | Mapping[str, JsonValue]
Labels = Iterable[str] | Mapping[str, str]
TEXTS_PER_REQUEST = 64


class ClientError(SpanshotError):
    """The service refused a request."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Call:
    """A request."""

    method: str
    path: str
    body: JsonObject | None = None
    parameters: Mapping[str, str | int] = field(default_factory=dict)


def create_call(
    name: str,
    examples: Iterable[Example],
    labels: Labels,
    *,
    nested: bool,
    threshold: float | Mapping[str, float] | None,
    precision: float | None,
) -> Call:
    """Return the request that creates a tagger."""
    body: dict[str, JsonValue] = {"name": name, "examples": list(examples), "labels": _labels(labels), "nested": nested}
    if threshold is not None:
        body["threshold"] = threshold
    if precision is not None:
        body["precision"] = precision
    return Call("POST", "/v1/taggers", body)


def add_call(name: str, examples: Iterable[Example], labels: Labels) -> Call:
    """Return the request that adds examples and labels."""
    return Call("POST", f"{_path(name)}/examples", {"examples": list(examples), "labels": _labels(labels)})


def tag_call(name: str, route: str, body: Mapping[str, JsonValue], version: int | None) -> Call:
    """Return a request that tags texts."""
    chosen: JsonObject = {} if version is None else {"version": version}
    return Call("POST", f"{_path(name)}/{route}", {**body, **chosen})


def _labels(labels: Labels) -> JsonValue:
    return dict(labels) if isinstance(labels, Mapping) else list(labels)


def _path(name: str) -> str:
    return f"/v1/taggers/{quote(name, safe='')}"


def entity_of(value: JsonValue) -> Entity:
    """Read an entity of an answer."""
    fields = Fields.of(value)
    reasons = []
    for item in fields.list("because") if "because" in fields.record else ():
        reason = Fields.of(item)
        text, example, kind = (reason.text(name) for name in ("text", "example", "kind"))
        reasons.append(Reason(text, example, reason.number("weight"), kind))
    return Entity(
        fields.text("text"),
        fields.text("label"),
        fields.integer("start"),
        fields.integer("end"),
        fields.number("score"),
        tuple(reasons),
    )


def entities_of(value: JsonValue) -> list[Entity]:
    """Read the entities of a text."""
    return [entity_of(item) for item in (value if isinstance(value, list) else [])]


def _answer(response: httpx.Response) -> Fields:
    """Return the fields of an answer, or raise the error in it."""
    if response.status_code == 204:
        return Fields({})
    try:
        value: JsonValue = response.json()
    except ValueError:
        value = {}
    if response.is_success:
        return Fields.of(value)
    record = value if isinstance(value, dict) else {}
    message = str(record.get("message") or f"the service answered with status {response.status_code}")
    raise ClientError(response.status_code, str(record.get("error", "error")), message)


def _pause(response: httpx.Response, tries_left: int) -> float | None:
    """Return how many seconds to wait before the request is tried again; None if it is not."""
    if response.status_code != 429 or tries_left < 1:
        return None
    seconds = response.headers.get("retry-after", "1")
    return float(seconds) if seconds.isdigit() else 1.0


class _Options:
    """How requests are sent, by both clients."""

    def __init__(self, url: str, key: str | None, timeout: float, tries: int) -> None:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self.url, self.headers, self.timeout, self.tries = url.rstrip("/"), headers, timeout, tries

    def content(self, call: Call) -> bytes | None:
        return None if call.body is None else to_json(call.body).encode("utf-8")


class Client:
    """Calls the service. Use it in a ``with`` block, or close it.

    Args:
        url: Where the service is, such as ``http://127.0.0.1:8000``.
        key: An API key.
        timeout: Most seconds of a request.
        tries: How often a request is sent while the service is busy; it waits as long as the service says.
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60.0, tries: int = 5) -> None:
        self._options = _Options(url, key, timeout, tries)
        self._http = httpx.Client(base_url=self._options.url, headers=self._options.headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, call: Call) -> Fields:
        for left in range(self._options.tries - 1, -1, -1):
            response = self._http.request(
                call.method, call.path, content=self._options.content(call), params=dict(call.parameters)
            )
            pause = _pause(response, left)
            if pause is None:
                break
            time.sleep(pause)
        return _answer(response)

    def create(
        self,
        name: str,
        examples: Iterable[Example] = (),
        *,
        labels: Labels = (),
        nested: bool = False,
        threshold: float | Mapping[str, float] | None = None,
        precision: float | None = None,
    ) -> JsonObject:
        """Learn a tagger from examples, or from the names of labels."""
        call = create_call(name, examples, labels, nested=nested, threshold=threshold, precision=precision)
        return self._send(call).record

    def taggers(self) -> Iterator[JsonObject]:
        """Yield all taggers, by name."""
        after: JsonValue = ""
        while after is not None:
            answer = self._send(Call("GET", "/v1/taggers", None, {"after": str(after)} if after else {}))
            yield from (Fields.of(item).record for item in answer.list("taggers"))
            after = answer.value("next")

    def tagger(self, name: str) -> JsonObject:
        """Return the labels, options and version of a tagger."""
        return self._send(Call("GET", _path(name))).record

    def delete(self, name: str) -> None:
        """Delete a tagger."""
        self._send(Call("DELETE", _path(name)))

    def examples(self, name: str) -> list[JsonObject]:
        """Return the examples of a tagger, with their ids."""
        answer = self._send(Call("GET", f"{_path(name)}/examples"))
        return [Fields.of(item).record for item in answer.list("examples")]

    def add(self, name: str, examples: Iterable[Example] = (), *, labels: Labels = ()) -> JsonObject:
        """Add examples and labels to a tagger."""
        return self._send(add_call(name, examples, labels)).record

    def remove_example(self, name: str, example: str) -> JsonObject:
        """Remove the example with that id."""
        return self._send(Call("DELETE", f"{_path(name)}/examples/{quote(example, safe='')}")).record

    def remove_label(self, name: str, label: str) -> JsonObject:
        """Remove a label."""
        return self._send(Call("DELETE", f"{_path(name)}/labels/{quote(label, safe='')}")).record

    def restore(self, name: str, version: int) -> JsonObject:
        """Return to an earlier version of a tagger."""
        return self._send(Call("POST", f"{_path(name)}/restore", {"version": version})).record

    def tag(self, name: str, text: str, *, version: int | None = None) -> list[Entity]:
        """Return the entities of a text."""
        return entities_of(self._send(tag_call(name, "tag", {"text": text}, version)).value("entities"))

    def explain(self, name: str, text: str, *, version: int | None = None) -> list[Entity]:
        """Return the entities of a text, with the examples that led to each."""
        return entities_of(self._send(tag_call(name, "explain", {"text": text}, version)).value("entities"))

    def pipe(
        self, name: str, texts: Iterable[str], *, version: int | None = None, batch_size: int = TEXTS_PER_REQUEST
    ) -> Iterator[list[Entity]]:
        """Yield the entities of each text, in order; any number of texts."""
        remaining = iter(texts)
        while batch := list(islice(remaining, batch_size)):
            answer = self._send(tag_call(name, "tag-many", {"texts": batch}, version))
            yield from map(entities_of, answer.list("results"))


class AsyncClient:
    """Calls the service from asyncio; like `Client`. Use it in an ``async with`` block, or close it."""

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60.0, tries: int = 5) -> None:
        self._options = _Options(url, key, timeout, tries)
        self._http = httpx.AsyncClient(base_url=self._options.url, headers=self._options.headers, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call) -> Fields:
        for left in range(self._options.tries - 1, -1, -1):
            response = await self._http.request(
                call.method, call.path, content=self._options.content(call), params=dict(call.parameters)
            )
            pause = _pause(response, left)
            if pause is None:
                break
            await asyncio.sleep(pause)
        return _answer(response)

    async def create(
        self,
        name: str,
        examples: Iterable[Example] = (),
        *,
        labels: Labels = (),
        nested: bool = False,
        threshold: float | Mapping[str, float] | None = None,
        precision: float | None = None,
    ) -> JsonObject:
        """Learn a tagger from examples, or from the names of labels."""
        call = create_call(name, examples, labels, nested=nested, threshold=threshold, precision=precision)
        return (await self._send(call)).record

    async def taggers(self) -> AsyncIterator[JsonObject]:
        """Yield all taggers, by name."""
        after: JsonValue = ""
        while after is not None:
            answer = await self._send(Call("GET", "/v1/taggers", None, {"after": str(after)} if after else {}))
            for item in answer.list("taggers"):
                yield Fields.of(item).record
            after = answer.value("next")

    async def tagger(self, name: str) -> JsonObject:
        """Return the labels, options and version of a tagger."""
        return (await self._send(Call("GET", _path(name)))).record

    async def delete(self, name: str) -> None:
        """Delete a tagger."""
        await self._send(Call("DELETE", _path(name)))

    async def examples(self, name: str) -> list[JsonObject]:
        """Return the examples of a tagger, with their ids."""
        answer = await self._send(Call("GET", f"{_path(name)}/examples"))
        return [Fields.of(item).record for item in answer.list("examples")]

    async def add(self, name: str, examples: Iterable[Example] = (), *, labels: Labels = ()) -> JsonObject:
        """Add examples and labels to a tagger."""
        return (await self._send(add_call(name, examples, labels))).record

    async def remove_example(self, name: str, example: str) -> JsonObject:
        """Remove the example with that id."""
        return (await self._send(Call("DELETE", f"{_path(name)}/examples/{quote(example, safe='')}"))).record

    async def remove_label(self, name: str, label: str) -> JsonObject:
        """Remove a label."""
        return (await self._send(Call("DELETE", f"{_path(name)}/labels/{quote(label, safe='')}"))).record

    async def restore(self, name: str, version: int) -> JsonObject:
        """Return to an earlier version of a tagger."""
        return (await self._send(Call("POST", f"{_path(name)}/restore", {"version": version}))).record

    async def tag(self, name: str, text: str, *, version: int | None = None) -> list[Entity]:
        """Return the entities of a text."""
        return entities_of((await self._send(tag_call(name, "tag", {"text": text}, version))).value("entities"))

    async def explain(self, name: str, text: str, *, version: int | None = None) -> list[Entity]:
        """Return the entities of a text, with the examples that led to each."""
        return entities_of((await self._send(tag_call(name, "explain", {"text": text}, version))).value("entities"))

    async def pipe(
        self, name: str, texts: Iterable[str], *, version: int | None = None, batch_size: int = TEXTS_PER_REQUEST
    ) -> AsyncIterator[list[Entity]]:
        """Yield the entities of each text, in order; any number of texts."""
        remaining = iter(texts)
        while batch := list(islice(remaining, batch_size)):
            answer = await self._send(tag_call(name, "tag-many", {"texts": batch}, version))
            for entities in answer.list("results"):
                yield entities_of(entities)
