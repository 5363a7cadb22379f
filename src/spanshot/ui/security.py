"""Refuse requests that do not come from the page itself: other hosts, other origins, no token."""

from __future__ import annotations

import secrets

from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = b"x-spanshot-token"
MOST_BYTES = 64_000_000
"""Largest request: a file that is dropped on the page."""
HEADERS = {
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    b"cache-control": b"no-store",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}


class Guard:
    """Wraps an application. Requests need a local host name, no foreign origin, and the token under ``/api``.

    The token in the address protects the page from other users of the machine; the checks of host and origin protect
    it from web pages in the same browser.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        problem = self._problem(scope, headers)
        if problem:
            await _refuse(send, *problem)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS.items()]
            await send(message)

        await self._app(scope, receive, guarded)

    def _problem(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in self._hosts:
            return 421, "this address is not served here"
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in {f"http://{name}" for name in self._hosts}:
            return 403, "requests from other origins are refused"
        if headers.get(b"sec-fetch-site", b"same-origin") not in {b"same-origin", b"none"}:
            is_page = scope["path"] == "/" and scope["method"] == "GET"
            if not is_page:
                return 403, "requests from other sites are refused"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MOST_BYTES or b"transfer-encoding" in headers:
            return 413, f"a request may have at most {MOST_BYTES // 1_000_000} MB"
        token = headers.get(TOKEN_HEADER, b"")
        if scope["path"].startswith("/api") and not secrets.compare_digest(token, self._token):
            return 401, "the token is missing or wrong; open the address that `spanshot ui` printed"
        return None


async def _refuse(send: Send, status: int, message: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *HEADERS.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": message.encode()})
