"""A worker process of the local mode.

It reads the packed work and then one line of JSON per part from standard input, and answers each with a line on
standard output. It ends as soon as the driver does, even in the middle of a part.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from dataclasses import asdict
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

from spanshot.corpus.plan import Part
from spanshot.corpus.work import unpacked
from spanshot.errors import SpanshotError
from spanshot.json_text import Fields, JsonValue, parse_json, to_json

READY: JsonValue = {"ready": True}


def part_line(part: Part) -> bytes:
    """Return a part as a line for a worker."""
    return f"{to_json(asdict(part))}\n".encode()


def parse_part(line: bytes) -> Part:
    """Read the line of a part."""
    fields = Fields.of(parse_json(line.decode()))
    number, start, end = (fields.integer(name) for name in ("number", "start", "end"))
    return Part(number, fields.text("file"), start, end, fields.text("name"), fields.text("stamp"))


def main() -> None:
    """Tag parts until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver ends its workers
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever is printed must not get among the replies
    source = sys.stdin.buffer
    parts: SimpleQueue[Part] = SimpleQueue()
    try:
        content = source.read(int(source.readline()))
        Thread(target=_receive, args=(source, parts), daemon=True).start()
        tag_part = unpacked(content)
        _reply(replies, READY)
        while True:
            _reply(replies, {"record": tag_part(parts.get()).json()})
    except SpanshotError as error:
        _reply(replies, {"error": str(error)})
    except Exception:
        _reply(replies, {"crash": traceback.format_exc()})


def _receive(source: BinaryIO, parts: SimpleQueue[Part]) -> None:
    for line in source:
        parts.put(parse_part(line))
    os._exit(0)


def _reply(replies: BinaryIO, value: JsonValue) -> None:
    replies.write(f"{to_json(value)}\n".encode())
