"""A Python client of the service: `Client`, and `AsyncClient` for programs on asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Self, Unpack

from spanshot.errors import SpanshotError
from spanshot.json_text import Fields, JsonObject, JsonValue
from spanshot.optional import missing
from spanshot.service import calls
from spanshot.service.calls import Answer, Call, CreateOptions, Example, Labels
from spanshot.types import Entity

try:
    import httpx
except ModuleNotFoundError:
    raise missing("httpx", "client") from None

TEXTS_PER_REQUEST = 64


class ClientError(SpanshotError):
    """The service refused a request."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def _headers(key: str | None) -> dict[str, str]:
    return {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})


def _request(http: httpx.Client | httpx.AsyncClient, call: Call[Answer]) -> httpx.Request:
    return http.build_request(call.method, call.path, content=call.content(), params=dict(call.parameters))


def _answer(response: httpx.Response) -> Fields:
    """Return the fields of an answer, or raise the error in it."""
    if response.status_code == 204:
        return Fields({})
    try:
        content: JsonValue = response.json()
    except ValueError:
        content = {}
    if response.is_success:
        return Fields.of(content)
    record = content if isinstance(content, dict) else {}
    message = str(record.get("message") or f"the service answered with status {response.status_code}")
    raise ClientError(response.status_code, str(record.get("error", "error")), message)


def _pause(response: httpx.Response, tries_left: int) -> float | None:
    """Return how many seconds to wait before the request is tried again; None if it is not."""
    if response.status_code != 429 or tries_left < 1:
        return None
    seconds = response.headers.get("retry-after", "1")
    return float(seconds) if seconds.isdigit() else 1.0


class Client:
    """Calls the service. Use it in a ``with`` block, or close it.

    Args:
        url: Where the service is, such as ``http://127.0.0.1:8000``.
        key: An API key.
        timeout: Most seconds of a request.
        tries: How often a request is sent while the service is busy; it waits as long as the service says.
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60.0, tries: int = 5) -> None:
        self._http = httpx.Client(base_url=url.rstrip("/"), headers=_headers(key), timeout=timeout)
        self._tries = tries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, call: Call[Answer]) -> Answer:
        for tries_left in reversed(range(self._tries)):
            response = self._http.send(_request(self._http, call))
            pause = _pause(response, tries_left)
            if pause is None:
                break
            time.sleep(pause)
        return call.read(_answer(response))

    def create(self, name: str, examples: Iterable[Example] = (), **options: Unpack[CreateOptions]) -> JsonObject:
        """Learn a tagger from examples, or from the names of labels.

        The options are ``labels``, ``nested``, ``threshold`` and ``precision``, as those of `spanshot.learn`.
        """
        return self._send(calls.create(name, examples, **options))

    def taggers(self) -> Iterator[JsonObject]:
        """Yield all taggers, by name."""
        following: str | None = ""
        while following is not None:
            page = self._send(calls.list_taggers(following))
            yield from page.taggers
            following = page.next

    def tagger(self, name: str) -> JsonObject:
        """Return the labels, options and version of a tagger."""
        return self._send(calls.get_tagger(name))

    def delete(self, name: str) -> None:
        """Delete a tagger."""
        self._send(calls.delete(name))

    def examples(self, name: str) -> list[JsonObject]:
        """Return the examples of a tagger, with their ids."""
        return self._send(calls.list_examples(name))

    def add(self, name: str, examples: Iterable[Example] = (), *, labels: Labels = ()) -> JsonObject:
        """Add examples and labels to a tagger."""
        return self._send(calls.add(name, examples, labels))

    def remove_example(self, name: str, example: str) -> JsonObject:
        """Remove the example with that id."""
        return self._send(calls.remove_example(name, example))

    def remove_label(self, name: str, label: str) -> JsonObject:
        """Remove a label."""
        return self._send(calls.remove_label(name, label))

    def restore(self, name: str, version: int) -> JsonObject:
        """Return to an earlier version of a tagger."""
        return self._send(calls.restore(name, version))

    def tag(self, name: str, text: str, *, version: int | None = None) -> list[Entity]:
        """Return the entities of a text."""
        return self._send(calls.tag(name, text, version))

    def explain(self, name: str, text: str, *, version: int | None = None) -> list[Entity]:
        """Return the entities of a text, with the examples that led to each."""
        return self._send(calls.tag(name, text, version, explain=True))

    def pipe(
        self, name: str, texts: Iterable[str], *, version: int | None = None, batch_size: int = TEXTS_PER_REQUEST
    ) -> Iterator[list[Entity]]:
        """Yield the entities of each text, in order; any number of texts."""
        remaining = iter(texts)
        while batch := list(islice(remaining, batch_size)):
            yield from self._send(calls.tag_many(name, batch, version))


class AsyncClient:
    """Calls the service from asyncio; like `Client`. Use it in an ``async with`` block, or close it."""

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60.0, tries: int = 5) -> None:
        self._http = httpx.AsyncClient(base_url=url.rstrip("/"), headers=_headers(key), timeout=timeout)
        self._tries = tries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call[Answer]) -> Answer:
        for tries_left in reversed(range(self._tries)):
            response = await self._http.send(_request(self._http, call))
            pause = _pause(response, tries_left)
            if pause is None:
                break
            await asyncio.sleep(pause)
        return call.read(_answer(response))

    async def create(self, name: str, examples: Iterable[Example] = (), **options: Unpack[CreateOptions]) -> JsonObject:
        """Learn a tagger from examples, or from the names of labels; see `Client.create`."""
        return await self._send(calls.create(name, examples, **options))

    async def taggers(self) -> AsyncIterator[JsonObject]:
        """Yield all taggers, by name."""
        following: str | None = ""
        while following is not None:
            page = await self._send(calls.list_taggers(following))
            for tagger in page.taggers:
                yield tagger
            following = page.next

    async def tagger(self, name: str) -> JsonObject:
        """Return the labels, options and version of a tagger."""
        return await self._send(calls.get_tagger(name))

    async def delete(self, name: str) -> None:
        """Delete a tagger."""
        await self._send(calls.delete(name))

    async def examples(self, name: str) -> list[JsonObject]:
        """Return the examples of a tagger, with their ids."""
        return await self._send(calls.list_examples(name))

    async def add(self, name: str, examples: Iterable[Example] = (), *, labels: Labels = ()) -> JsonObject:
        """Add examples and labels to a tagger."""
        return await self._send(calls.add(name, examples, labels))

    async def remove_example(self, name: str, example: str) -> JsonObject:
        """Remove the example with that id."""
        return await self._send(calls.remove_example(name, example))

    async def remove_label(self, name: str, label: str) -> JsonObject:
        """Remove a label."""
        return await self._send(calls.remove_label(name, label))

    async def restore(self, name: str, version: int) -> JsonObject:
        """Return to an earlier version of a tagger."""
        return await self._send(calls.restore(name, version))

    async def tag(self, name: str, text: str, *, version: int | None = None) -> list[Entity]:
        """Return the entities of a text."""
        return await self._send(calls.tag(name, text, version))

    async def explain(self, name: str, text: str, *, version: int | None = None) -> list[Entity]:
        """Return the entities of a text, with the examples that led to each."""
        return await self._send(calls.tag(name, text, version, explain=True))

    async def pipe(
        self, name: str, texts: Iterable[str], *, version: int | None = None, batch_size: int = TEXTS_PER_REQUEST
    ) -> AsyncIterator[list[Entity]]:
        """Yield the entities of each text, in order; any number of texts."""
        remaining = iter(texts)
        while batch := list(islice(remaining, batch_size)):
            for entities in await self._send(calls.tag_many(name, batch, version)):
                yield entities
