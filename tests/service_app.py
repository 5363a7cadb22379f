"""Send requests to the service within the test's process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from spanshot.service.app import create_app
from spanshot.service.settings import Limits, Settings

KEY = "a-key-that-is-long-enough"


class Api:
    """An application and how to ask it; `ask` returns the response."""

    def __init__(self, folder: Path, *, limits: Limits | None = None, **settings: object) -> None:
        self.app = create_app(Settings(folder, limits=limits or Limits(), **settings))
        self.service = self.app.state.service

    def ask(self, method: str, path: str, body: object = None, **options: object) -> httpx.Response:
        return self.ask_all([(method, path, body)], **options)[0]

    def ask_all(self, calls: list[tuple[str, str, object]], **options: object) -> list[httpx.Response]:
        """Send several requests at the same time."""

        async def send() -> list[httpx.Response]:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                sent = [
                    client.request(method, path, **({} if body is None else {"json": body}), **options)
                    for method, path, body in calls
                ]
                return list(await asyncio.gather(*sent))

        return asyncio.run(send())

    def close(self) -> None:
        self.service.close()
