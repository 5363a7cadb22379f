"""What happens to a request before it reaches a route: keys, limits on bodies and on requests at a time, metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spanshot.json_text import to_json
from spanshot.service.core import Service
from spanshot.service.errors import ServiceError, overloaded
from spanshot.service.keys import Keys
from spanshot.service.settings import Limits

OPEN_PATHS = {"/health", "/ready", "/openapi.json"}
"""Paths that need no key and are answered under load, too."""
STREAM = "/tag-stream"
TAGGING = {"tag", "tag-many", "tag-stream", "explain", "predict"}
"""The last parts of paths that are refused before their bodies are read if the queue is full."""


class ServiceHTTPError(HTTPException):
    """A service error that is raised while a body is read; the framework passes it on."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(error.status, str(error), error.headers)
        self.error = error


class Guard:
    """Checks each request and counts it."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._keys = Keys(service.settings.keys)
        self._in_flight = 0
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request(self._service, scope, send)
        metrics = self._service.metrics
        self._in_flight += 1
        metrics.in_flight.set(self._in_flight)
        body = _Body(self._service.limits, self._add_bytes, receive, scope)
        try:
            self._check(scope)
            body.check_length()
            await self._app(scope, body.receive, request.send)
        except ServiceError as error:
            await request.refuse(error)
        finally:
            self._in_flight -= 1
            self._bytes -= body.counted
            metrics.in_flight.set(self._in_flight)
            request.count()

    def _check(self, scope: Scope) -> None:
        if scope["path"] in OPEN_PATHS:
            return
        if not self._keys.allow(scope["headers"]):
            raise ServiceError(401, "no_key", "give an API key: the header `Authorization: Bearer KEY`")
        if self._service.closing:
            raise ServiceError(503, "shutting_down", "the service is shutting down", 1)
        if self._in_flight > self._service.limits.requests:
            raise overloaded("too many requests at the same time")
        if scope["path"].rpartition("/")[2] in TAGGING:
            self._service.batcher.refuse_if_full()

    def _add_bytes(self, count: int) -> None:
        """Count bytes of a body that is held in memory."""
        self._bytes += count
        if self._bytes > self._service.limits.bodies:
            raise ServiceHTTPError(overloaded("too many large requests at the same time"))


class _Body:
    """The body of a request: its size and the time to wait for it are limited."""

    def __init__(self, limits: Limits, add_bytes: Callable[[int], None], receive: Receive, scope: Scope) -> None:
        self._limits = limits
        self._add_bytes = add_bytes
        self._receive = receive
        self._is_stream = scope["path"].endswith(STREAM)
        self._length = dict(scope["headers"]).get(b"content-length", b"")
        self._until = time.monotonic() + limits.seconds
        self._complete = False
        self.counted = 0

    def check_length(self) -> None:
        """Refuse a body that is announced to be too large before it is read."""
        if not self._is_stream and self._length.isdigit() and int(self._length[:20]) > self._limits.body:
            raise self._too_large()

    async def receive(self) -> Message:
        """Receive a part of the body, or wait for the end of the connection."""
        if self._complete:
            return await self._receive()
        wait = self._limits.seconds if self._is_stream else max(0.0, self._until - time.monotonic())
        try:
            async with asyncio.timeout(wait):
                message = await self._receive()
        except TimeoutError:
            text = f"the body did not arrive within {self._limits.seconds} seconds"
            raise ServiceHTTPError(ServiceError(408, "body_timeout", text)) from None
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        if not self._is_stream:
            size = len(message.get("body", b""))
            self.counted += size
            if self.counted > self._limits.body:
                raise ServiceHTTPError(self._too_large())
            self._add_bytes(size)
        return message

    def _too_large(self) -> ServiceError:
        message = f"the body is too large; at most {self._limits.body:,} bytes are allowed"
        return ServiceError(413, "body_too_large", message)


class _Request:
    """The answer to one request, for the metrics."""

    def __init__(self, service: Service, scope: Scope, send: Send) -> None:
        self._service = service
        self._scope = scope
        self._send = send
        self._began = time.monotonic()
        self._status = 500
        self._started = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._started = True
            message["headers"] = [
                *message.get("headers", []),
                (b"x-content-type-options", b"nosniff"),
                (b"cache-control", b"no-store"),
            ]
        await self._send(message)

    async def refuse(self, error: ServiceError) -> None:
        """Answer with an error."""
        if self._started:
            return
        headers = [(name.lower().encode(), text.encode()) for name, text in error.headers.items()]
        content = error_body(error.code, str(error))
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await self.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": content})

    def count(self) -> None:
        """Add the request to the metrics."""
        route = getattr(self._scope.get("route"), "path", "other")
        method = self._scope["method"] if self._scope["method"] in _METHODS else "other"
        self._service.metrics.requests.labels(method, route, str(self._status)).inc()
        self._service.metrics.seconds.labels(route).observe(time.monotonic() - self._began)


_METHODS = {"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"}


def error_body(code: str, message: str) -> bytes:
    """Return the body of an error."""
    return to_json({"error": code, "message": message}).encode("utf-8")
