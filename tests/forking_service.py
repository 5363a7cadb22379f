"""Start the service many times at little cost: a process imports everything once, and each start is a fork of it.

Run as a program, it reads a port from each line of its input, starts the service there, and prints the process id.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx

import spanshot
from service_process import free_port


class ForkingService:
    """Starts and kills services of one folder; use it in a `with` block."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(Path(spanshot.__file__).parents[1]), str(Path(__file__).parent)]
        )
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> ForkingService:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def start(self) -> tuple[str, int]:
        """Start a service and return its address and process id."""
        port = free_port()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{port}\n")
        self._process.stdin.flush()
        number = int(self._process.stdout.readline())
        for _ in range(2400):
            try:
                if httpx.get(f"http://127.0.0.1:{port}/ready", timeout=30).status_code == 200:
                    return f"http://127.0.0.1:{port}", number
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the service did not start")


def main(folder: Path) -> None:
    """Serve as often as there are lines of input."""
    import uvicorn

    from spanshot.model import embedded_model
    from spanshot.service.app import create_app
    from spanshot.service.settings import Settings

    embedded_model()
    for line in sys.stdin:
        number = os.fork()
        if not number:
            uvicorn.run(create_app(Settings(folder)), port=int(line), log_level="error")
            os._exit(0)
        print(number, flush=True)
        os.waitpid(number, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
