"""The server of the page: a thin layer that turns requests into calls of a session."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from spanshot.checkpoint import check_target
from spanshot.errors import DataError, SpanshotError
from spanshot.formats.json_values import JsonObject, JsonValue, Place, parse_json
from spanshot.formats.project import SUFFIX
from spanshot.ui import exporting, reading
from spanshot.ui.actions import act
from spanshot.ui.example import EXAMPLE
from spanshot.ui.security import Guard
from spanshot.ui.session import Session

STATIC = Path(__file__).parent / "static"
ASSETS = {"/": "index.html", "/app.js": "app.js", "/app.css": "app.css", "/icon.svg": "icon.svg"}
POLL_SECONDS = 20.0
MOST_ROWS = 400
_PLACE = Place("request")
Answer = TypeVar("Answer")


def make_app(session: Session, token: str, port: int) -> Guard:
    """Return the application for one session."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    _add_routes(app, session)
    hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
    return Guard(app, token, hosts)


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(24)


def bind(port: int = 0) -> socket.socket:
    """Return a socket on 127.0.0.1; port 0 stands for any free one."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(("127.0.0.1", port))
        bound.listen(128)  # requests wait until the server is ready
    except OSError as error:
        bound.close()
        raise DataError(f"port {port} cannot be used: {error.strerror}; choose another with --port") from None
    return bound


async def _in_thread(function: Callable[[], Answer]) -> Answer:
    return await anyio.to_thread.run_sync(function)


async def _wait(session: Session, since: int) -> None:
    """Wait until the revision is newer, but not forever."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def listen() -> None:
        with contextlib.suppress(RuntimeError):  # the server has stopped
            loop.call_soon_threadsafe(news.set)

    session.listeners.add(listen)
    try:
        if session.revision <= since:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), POLL_SECONDS)
    finally:
        session.listeners.discard(listen)


async def _body(request: Request) -> JsonObject:
    raw = await request.body()
    try:
        body: JsonValue = parse_json("request", raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise DataError("the request is not UTF-8") from None
    return _PLACE.record(body, "do")


def _numbers(body: JsonObject, key: str) -> list[int]:
    """Return the numbers of texts in a list of a request; none if it is missing."""
    return [_PLACE.check(number, key, int) for number in _PLACE.check(body.get(key) or [], key, list)][:MOST_ROWS]


def _add_routes(app: FastAPI, session: Session) -> None:
    def file(name: str) -> Callable[[], FileResponse]:
        return lambda: FileResponse(STATIC / name)

    for path, name in ASSETS.items():
        app.add_api_route(path, file(name), methods=["GET"], response_class=FileResponse)

    @app.exception_handler(SpanshotError)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        del request
        return JSONResponse({"error": str(error)}, status_code=400)

    @app.get("/api/summary")
    async def summary() -> JSONResponse:
        return JSONResponse(await _in_thread(session.summary))

    @app.get("/api/changes")
    async def changes(since: int) -> JSONResponse:
        """Answer as soon as something has changed."""
        await _wait(session, since)
        return JSONResponse(await _in_thread(lambda: session.summary(since)))

    @app.get("/api/list")
    async def listed(status: str = "all", label: str = "", search: str = "") -> JSONResponse:
        numbers = await _in_thread(lambda: session.listed(status=status, label=label, search=search))
        return JSONResponse({"ids": numbers})

    @app.post("/api/rows")
    async def rows(request: Request) -> JSONResponse:
        body = await _body(request)
        numbers, visible = _numbers(body, "ids"), _numbers(body, "visible")

        def look() -> Sequence[object]:
            session.look(visible)
            return session.rows(numbers)

        return JSONResponse({"rows": await _in_thread(look)})

    @app.post("/api/do")
    async def do(request: Request) -> JSONResponse:
        body = await _body(request)
        visible = _numbers(body, "visible")

        def apply() -> dict[str, object]:
            before = session.revision
            message = session.act(lambda project: act(project, body), visible)
            summary = session.summary(before)
            changed = summary["changed"]
            assert isinstance(changed, list)
            return {"message": message, "summary": summary, "rows": session.rows(changed[:MOST_ROWS])}

        return JSONResponse(await _in_thread(apply))

    @app.post("/api/preview")
    async def preview(request: Request) -> JSONResponse:
        body = await _body(request)
        threshold = body.get("threshold")
        limit = float(threshold) if isinstance(threshold, int | float) else None
        session.try_threshold(_PLACE.take(body, "label", str), limit)
        return JSONResponse({})

    @app.post("/api/texts")
    async def texts(request: Request) -> JSONResponse:
        """Add pasted text, or a dropped file if it has a name."""
        name = request.query_params.get("name", "")
        content = await request.body()

        def add() -> int:
            if request.query_params.get("example"):
                documents = reading.read_pasted(EXAMPLE)
            else:
                documents = reading.read_upload(name or "pasted.txt", content)
            return len(session.act(lambda project: reading.add_new(project, documents, name)))

        return JSONResponse({"added": await _in_thread(add)})

    @app.get("/api/next")
    async def next_text(current: int = 0) -> JSONResponse:
        return JSONResponse({"id": await _in_thread(lambda: session.next_text(current))})

    @app.get("/api/why")
    async def why(text: int, start: int, end: int, label: str) -> JSONResponse:
        if text not in session.project.state.texts:
            raise DataError(f"there is no text {text}")
        return JSONResponse({"reasons": await _in_thread(lambda: session.why(text, start, end, label))})

    @app.get("/api/export")
    async def export(kind: str, whole: bool = False) -> Response:
        with session.lock:
            documents = exporting.documents_of(session.project.state, whole=whole)
        content, suffix, note = await _in_thread(lambda: exporting.export(documents, kind))
        name = session.project.file.path.name.removesuffix(SUFFIX) + suffix
        headers = {"x-spanshot-name": quote(name), "x-spanshot-note": quote(note)}
        return Response(content, media_type="application/octet-stream", headers=headers)

    @app.post("/api/tagger")
    async def tagger(request: Request) -> JSONResponse:
        body = await _body(request)
        folder = session.project.file.path.parent / _PLACE.take(body, "folder", str)

        def save() -> None:
            check_target(folder, "tagger")
            session.learn().save(folder)

        await _in_thread(save)
        return JSONResponse({"folder": str(folder)})

    @app.get("/api/commands")
    async def commands() -> JSONResponse:
        with session.lock:
            return JSONResponse(exporting.commands(session.project.state, session.project.file.path))

    @app.post("/api/finetune")
    async def finetune() -> JSONResponse:
        await _in_thread(session.finetune)
        return JSONResponse({})
