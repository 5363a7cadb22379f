"""Start the service with uvicorn."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import uvicorn

from spanshot.service.settings import VARIABLE, Settings


def serve(settings: Settings, host: str, port: int, workers: int, log_level: str = "warning") -> None:
    """Answer requests until the process is told to end; requests that are under way are finished first."""
    shared: Path | None = None
    if workers > 1:
        shared = Path(tempfile.mkdtemp(prefix="spanshot-metrics-"))
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared)  # read when prometheus_client is imported
        settings = replace(settings, metrics=shared)
    os.environ[VARIABLE] = settings.to_json()
    try:
        uvicorn.run(
            "spanshot.service.app:from_environment",
            factory=True,
            host=host,
            port=port,
            workers=workers,
            log_level=log_level,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=settings.limits.seconds + 5,
            backlog=512,
        )
    finally:
        os.environ.pop(VARIABLE, None)
        if shared is not None:
            shutil.rmtree(shared, ignore_errors=True)
