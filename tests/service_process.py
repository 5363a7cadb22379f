"""The service in a process of its own, as users start it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

import spanshot


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ServiceProcess:
    """`spanshot serve` on a free port; use it in a `with` block."""

    def __init__(self, folder: Path, *arguments: str, keys: str = "") -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {**os.environ, "PYTHONPATH": str(Path(spanshot.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
        environment["SPANSHOT_API_KEYS"] = keys
        command = [sys.executable, "-m", "spanshot", "serve", "--folder", str(folder), "--port", str(self.port)]
        self.process = subprocess.Popen([*command, *arguments], env=environment, stderr=subprocess.PIPE, text=True)

    def wait(self, seconds: float = 120) -> ServiceProcess:
        """Wait until it answers."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self.process.poll() is None, self.process.stderr.read() if self.process.stderr else ""
            try:
                if httpx.get(f"{self.url}/ready", timeout=5).status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the service did not start")

    def __enter__(self) -> ServiceProcess:
        return self.wait()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(60)
        finally:
            if self.process.stderr:
                self.process.stderr.close()
