"""One of two processes that train together, without a launcher; it may be told when to be killed."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import killable
from spanshot.research.training import dev


def train_rank(rank: int, port: int, table: dict[str, Any], folder: str, moment: str = "", count: int = 0) -> None:
    """Run to the end, or until ``moment`` comes for the ``count``-th time. Record the dev episodes of this process."""
    os.environ |= environment(rank, port)
    shares: list[int] = []
    evaluate_biases = dev.evaluate_biases

    def counted(method: Any, share: Any, *arguments: Any) -> Any:
        shares.append(len(share))
        return evaluate_biases(method, share, *arguments)

    dev.evaluate_biases = counted
    killable.train(table, folder, moment, count)
    Path(f"{folder}-shares-{rank}").write_text(json.dumps(shares), encoding="utf-8")


def environment(rank: int, port: int) -> dict[str, str]:
    """As `torchrun` sets it for one of two processes."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": loopback(),
    }


def free_port() -> int:
    """A port that no process listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def loopback() -> str:
    """The network interface of this machine alone."""
    return next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
