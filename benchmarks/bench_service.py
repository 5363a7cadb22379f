"""Measure the HTTP service: requests per second and latencies, next to bare calls of the tagger; and overload.

    python benchmarks/bench_service.py                          a table
    python benchmarks/bench_service.py --overload 120           ten times the sustainable load for two minutes

The service runs in a process of its own, with one thread. CPU time is that of the service (or of the bare calls), so
that figures can be compared on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]
NAMES = ["Oslo", "Rome", "Lima", "Kyiv", "Bergen", "Paris", "Lyon", "Accra", "Quito", "Hanoi"]
DAYS = ["Monday", "Tuesday", "Friday", "Sunday"]
CONNECTIONS = 400
"""More than the service answers at the same time."""
OVERLOAD_TAGGERS = 10


@dataclass(frozen=True)
class Row:
    """The figures of one setting."""

    what: str
    clients: int
    taggers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    """CPU time of a request."""


def examples(number: int) -> list[str]:
    """Return the examples of a tagger; no two taggers have the same."""
    chance = random.Random(number)
    lines = ["{a} is cold on {d}.", "They left {a} for {b}.", "Trains to {a} leave on {d}.", "We met in {a}."]
    return [
        line.replace("{a}", f"[{chance.choice(NAMES)}](city{number})")
        .replace("{b}", f"[{chance.choice(NAMES)}](city{number})")
        .replace("{d}", f"[{chance.choice(DAYS)}](day)")
        for line in lines
    ]


def texts(count: int) -> list[str]:
    """Return sentences of 8 to 40 words."""
    chance = random.Random(1)
    words = ["the", "train", "from", "a", "town", "was", "late", "and", "people", "met", "at", "noon", "about", "rain"]
    return [
        " ".join(chance.choice([*words, *NAMES, *DAYS]) for _ in range(chance.randint(8, 40))) + "."
        for _ in range(count)
    ]


class Server:
    """The service in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-m", "spanshot", "serve", "--folder", str(folder), "--port", str(port)]
        self.process = subprocess.Popen([*command, *arguments], env=environment)
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/ready", timeout=10).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise SystemExit("the service did not start")

    def cpu(self) -> float:
        """Return its CPU seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """Return its memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1000

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


async def load(server: Server, clients: int, taggers: int, requests: int, sentences: list[str]) -> Row:
    """Send requests from several clients, each one after the other."""
    seconds: list[float] = []
    remaining = iter(range(requests))

    async def client() -> None:
        async with httpx.AsyncClient(base_url=server.url, timeout=120) as http:
            for number in remaining:
                began = time.perf_counter()
                body = {"text": sentences[number % len(sentences)]}
                answer = await http.post(f"/v1/taggers/t{number % taggers}/tag", json=body)
                assert answer.status_code == 200, answer.text
                seconds.append(time.perf_counter() - began)

    cpu, began = server.cpu(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    passed = time.perf_counter() - began
    return row("service", clients, taggers, seconds, passed, server.cpu() - cpu)


def row(what: str, clients: int, taggers: int, seconds: list[float], passed: float, cpu: float) -> Row:
    """Return the figures of a run."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return Row(
        what,
        clients,
        taggers,
        round(len(seconds) / passed, 1),
        round(statistics.median(seconds) * 1000, 1),
        round(p99 * 1000, 1),
        round(cpu / len(seconds) * 1000, 2),
    )


def bare(taggers: int, requests: int, sentences: list[str]) -> Row:
    """Call taggers in this process, one text at a time."""
    import spanshot

    known = [spanshot.learn(examples(number)) for number in range(taggers)]
    for tagger in known:
        tagger(sentences[0])
    seconds = []
    cpu, began = time.process_time(), time.perf_counter()
    for number in range(requests):
        start = time.perf_counter()
        known[number % taggers](sentences[number % len(sentences)])
        seconds.append(time.perf_counter() - start)
    passed = time.perf_counter() - began
    return row("bare calls", 1, taggers, seconds, passed, time.process_time() - cpu)


async def overload(server: Server, rate: float, seconds: float, sentences: list[str]) -> dict[str, object]:
    """Send requests at a rate over many connections; return what came back, and the memory of the service.

    It speaks HTTP by itself: a client library would be the bottleneck.
    """
    statuses: Counter[str] = Counter()
    memory = [server.megabytes()]
    host, port = server.url.removeprefix("http://").split(":")
    began = time.monotonic()
    sent = retry_after = 0

    async def connection(first: int) -> None:
        nonlocal sent, retry_after
        number = first
        while number / rate < seconds:
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            if time.monotonic() - began > seconds:
                break
            body = json.dumps({"texts": sentences[number % 400 : number % 400 + 8]}).encode()
            path = f"/v1/taggers/t{number % OVERLOAD_TAGGERS}/tag-many"
            head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            reader, writer = await asyncio.open_connection(host, int(port))  # the service closes idle ones
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            sent += 1
            try:
                answer = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 120)).decode("latin-1").lower()
                await reader.readexactly(int(answer.partition("content-length: ")[2].split("\r\n")[0]))
                statuses[answer.split(" ")[1]] += 1
                retry_after += "\r\nretry-after: " in answer
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as problem:
                statuses[type(problem).__name__] += 1
            writer.close()
            number += CONNECTIONS

    async def watch() -> None:
        while True:
            memory.append(server.megabytes())
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(connection(first) for first in range(CONNECTIONS)))
    watching.cancel()
    return {
        "seconds": round(time.monotonic() - began, 1),
        "offered per second": round(rate, 1),
        "sent": sent,
        "answers": dict(statuses),
        "with Retry-After": retry_after,
        "megabytes before, most, after": [round(memory[0]), round(max(memory)), round(server.megabytes())],
    }


def create(server: Server, count: int) -> None:
    """Create taggers, unless they are there."""
    for number in range(count):
        body = {"name": f"t{number}", "examples": examples(number)}
        assert httpx.post(f"{server.url}/v1/taggers", json=body, timeout=120).status_code in (201, 409)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--overload", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--factor", type=float, default=10, help="offered load as a multiple of the sustainable one")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(ROOT / "src"))
    sentences = texts(500)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            create(server, OVERLOAD_TAGGERS if options.overload else 50)
            asyncio.run(load(server, 4, OVERLOAD_TAGGERS, 20, sentences))  # warm up
            if options.overload:
                asyncio.run(load(server, 8, OVERLOAD_TAGGERS, 80, sentences))
                sustained = asyncio.run(load(server, 8, OVERLOAD_TAGGERS, 80, sentences)).per_second / 8  # of 8 texts
                answers = asyncio.run(overload(server, options.factor * sustained, options.overload, sentences))
                print(json.dumps({"sustainable per second": sustained, **answers}, indent=1))
                return
            rows = []
            for taggers in (1, 50):
                rows.append(bare(taggers, options.requests, sentences))
                rows += [asyncio.run(load(server, n, taggers, options.requests, sentences)) for n in (1, 16)]
        finally:
            server.stop()
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print("| | clients | taggers | requests/s | p50 ms | p99 ms | CPU ms/request |\n| --- " + "| ---: " * 6 + "|")
    for r in rows:
        print(f"| {r.what} | {r.clients} | {r.taggers} | {r.per_second} | {r.p50_ms} | {r.p99_ms} | {r.cpu_ms} |")


if __name__ == "__main__":
    main()
