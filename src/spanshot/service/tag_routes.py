"""The routes that tag texts: one, many, or a stream of lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from spanshot.errors import DataError, SpanshotError
from spanshot.formats.json_values import JsonObject, JsonValue
from spanshot.formats.schema import to_records
from spanshot.json_text import parse_json, to_json
from spanshot.service.core import Service
from spanshot.service.errors import ServiceError, too_long
from spanshot.service.routes import ERRORS, NOT_FOUND, TheService, VersionQuery
from spanshot.service.schemas import (
    EntityOut,
    Explained,
    ExplainedEntity,
    ManyTexts,
    NamePath,
    OneText,
    Tagged,
    TaggedMany,
)
from spanshot.types import Entity

router = APIRouter(prefix="/v1/taggers", tags=["tagging"], responses={**ERRORS, **NOT_FOUND})
NDJSON = "application/x-ndjson"
_TOGETHER = 64
"""Most lines of a stream that are tagged together."""
_WAIT = 0.05


@router.post("/{name}/tag")
async def tag_text(service: TheService, name: NamePath, body: OneText) -> Tagged:
    """Find the entities of a text."""
    stored, results = await service.tag(name, [body.text], body.version)
    return Tagged(version=stored.version, entities=[EntityOut.of(entity) for entity in results[0]])


@router.post("/{name}/tag-many")
async def tag_texts(service: TheService, name: NamePath, body: ManyTexts) -> TaggedMany:
    """Find the entities of several texts."""
    stored, results = await service.tag(name, body.texts, body.version)
    entities_of = [[EntityOut.of(entity) for entity in entities] for entities in results]
    return TaggedMany(version=stored.version, results=entities_of)


@router.post("/{name}/explain")
async def explain(service: TheService, name: NamePath, body: OneText) -> Explained:
    """Find the entities of a text, and give the examples that led to each."""
    stored, results = await service.tag(name, [body.text], body.version)
    return Explained(version=stored.version, entities=[ExplainedEntity.of(entity) for entity in results[0]])


@router.post(
    "/{name}/tag-stream",
    response_class=Response,
    responses={
        200: {
            "description": "A line for each line: `{"
            '"line": 1, "entities": [...]}`, with the `id` of the line if it has one, or `{"line": 2, "error": ...}`.',
            "content": {NDJSON: {"schema": {"type": "string"}}},
        }
    },
    openapi_extra={
        "requestBody": {
            "description": 'A text on each line: `{"text": "..."}` or `{"text": "...", "id": ...}`.',
            "content": {NDJSON: {"schema": {"type": "string"}}},
        }
    },
)
async def tag_stream(request: Request, service: TheService, name: NamePath, version: VersionQuery = None) -> Response:
    """Tag a stream of lines. Answers come as the lines do, so a stream may be of any length."""
    stored, _ = await service.tagger(name, version)
    service.batcher.refuse_if_full()
    lines = _lines(request, service.limits.body)
    return _Lines(_tag_lines(service, name, stored.version, lines))


class _Lines(Response):
    """Sends lines as they come. Starlette's response for streams may read parts of the body that lines come from."""

    media_type = NDJSON

    def __init__(self, lines: AsyncIterator[str]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for lines in self._lines:
            await send({"type": "http.response.body", "body": lines.encode("utf-8"), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(slots=True)
class _Line:
    number: int
    text: str | None = None
    id: JsonValue = None
    error: str = ""

    @classmethod
    def parse(cls, number: int, content: bytes, longest: int) -> _Line:
        """Read a line; what is wrong with it becomes part of the answer."""
        try:
            record = parse_json(content.decode("utf-8"))
        except UnicodeDecodeError:
            return cls(number, error="the line is not UTF-8")
        except DataError as problem:
            return cls(number, error=str(problem))
        text = record.get("text") if isinstance(record, dict) else None
        if not isinstance(record, dict) or not isinstance(text, str):
            return cls(number, error='expected {"text": "..."}')
        if len(text) > longest:
            return cls(number, id=record.get("id"), error=str(too_long("text", longest, len(text))))
        return cls(number, text, record.get("id"))

    def answer(self, entities: Sequence[Entity]) -> str:
        """Return the line of the answer."""
        record: JsonObject = {"line": self.number}
        if self.id is not None:
            record["id"] = self.id
        if self.error:
            record["error"] = self.error
        else:
            record["entities"] = [*to_records(entities)]
        return to_json(record) + "\n"


async def _lines(request: Request, longest: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a body that are there, as lists."""
    rest = b""
    async for part in request.stream():
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > longest:
            raise ServiceError(413, "line_too_long", f"a line is too long; at most {longest:,} bytes are allowed")
        if lines:
            yield lines
    if rest.strip():
        yield [rest]


async def _tag_lines(
    service: Service, name: str, version: int, parts: AsyncIterator[list[bytes]]
) -> AsyncIterator[str]:
    number = 0
    try:
        async for contents in parts:
            for start in range(0, len(contents), _TOGETHER):
                lines = []
                for content in contents[start : start + _TOGETHER]:
                    number += 1
                    if content.strip():
                        lines.append(_Line.parse(number, content, service.limits.text))
                yield await _answers(service, name, version, lines)
    except Exception as problem:  # the status is sent already: the reason is the last line
        known = isinstance(problem, SpanshotError)
        detail = getattr(problem, "detail", None) or str(problem)
        yield to_json({"error": str(detail) if known or hasattr(problem, "detail") else "internal error"}) + "\n"


async def _answers(service: Service, name: str, version: int, lines: list[_Line]) -> str:
    texts = [line.text for line in lines if line.text is not None]
    results = iter(await _tag_when_free(service, name, version, texts) if texts else [])
    return "".join(line.answer(() if line.text is None else next(results)) for line in lines)


async def _tag_when_free(service: Service, name: str, version: int, texts: list[str]) -> list[list[Entity]]:
    """Tag texts as soon as there is room: a stream slows its client down instead of failing."""
    while True:
        try:
            return (await service.tag(name, texts, version))[1]
        except ServiceError as problem:
            if problem.status != 429:
                raise
            await asyncio.sleep(_WAIT)
