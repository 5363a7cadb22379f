"""Read the texts to tag from arguments, files and standard input. Lines that cannot be read are reported, not fatal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import TypeVar

from spanshot.errors import DataError
from spanshot.formats.table_files import check_columns, is_table_file, read_rows
from spanshot.json_text import Fields, JsonObject, parse_json

Item = TypeVar("Item")
STDIN = "standard input"
_BLOCK = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Text:
    """A text to tag."""

    text: str
    fields: JsonObject = field(default_factory=dict)
    """Other fields of its JSON line, copied to the result."""
    raw: bytes = b""
    """The line that was read."""
    place: str = ""
    """Where it was read: ``file:line``."""


@dataclass(frozen=True)
class BadLine:
    """A line without usable text."""

    place: str
    problem: str
    raw: bytes = b""

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


def read_texts(
    arguments: Sequence[str], files: Sequence[Path], whole: bool, batch: int, column: str = "text"
) -> Iterator[list[Text | BadLine]]:
    """Read texts in batches of at most ``batch``: the arguments, then each file; ``-`` is standard input.

    Each line is a text; with ``whole``, each file is. JSON lines have the text in the field "text", tables in a column;
    other fields and columns are copied to the result. A batch from standard input ends where no more input is
    available, so a slow stream is answered line by line.
    """
    if arguments:
        yield [_checked(Text(text, raw=os.fsencode(text), place=f"text {n}")) for n, text in enumerate(arguments, 1)]
    for path in files or ([] if arguments else [Path("-")]):
        if is_table_file(path):
            yield from _chunks(_rows(path, column), batch)
        elif str(path) != "-":
            yield from _chunks(_parse(_file_lines(path), str(path), path.suffix, whole), batch)
        elif (descriptor := _descriptor(sys.stdin)) is not None:
            yield from _arriving(_parse(_stream_lines(descriptor), STDIN, "", whole), batch)
        else:
            lines = (os.fsencode(line) for line in sys.stdin)
            yield from _chunks(_parse(lines, STDIN, "", whole), batch)


# Rows


def _rows(path: Path, column: str) -> Iterator[Text | BadLine]:
    numbers = count(1)
    for rows in read_rows(path):
        check_columns(rows.names, column)
        for record in rows.records():
            text, place = record.pop(column), f"{path}: row {next(numbers)}"
            record.pop("entities", None)
            raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else b""
            if isinstance(text, str):
                yield _checked(Text(text, record, raw, place))
            else:
                yield BadLine(place, f"no text in the column {column!r}", raw)


# Lines


def _file_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _stream_lines(descriptor: int) -> Iterator[bytes]:
    """Read lines from a file descriptor. Unlike a file object it holds no lock that blocks the exit of Python."""
    unfinished: list[bytes] = []  # joined once, so that a very long line takes linear time
    while block := os.read(descriptor, _BLOCK):
        first, *lines = block.split(b"\n")
        unfinished.append(first)
        for line in lines:
            yield b"".join(unfinished) + b"\n"
            unfinished = [line]
    if last_line := b"".join(unfinished):
        yield last_line


def _descriptor(stream: object) -> int | None:
    fileno = getattr(stream, "fileno", None)
    try:
        return int(fileno()) if fileno else None
    except (OSError, ValueError):  # not a real file, such as one that a test put in place
        return None


# Texts


def _parse(lines: Iterable[bytes], name: str, suffix: str, whole: bool) -> Iterator[Text | BadLine]:
    if whole:
        yield _plain(b"".join(lines).removeprefix(_BYTE_ORDER_MARK), name)
        return
    is_json = True if suffix in {".jsonl", ".ndjson"} else None
    separate = chain.from_iterable(line.rstrip(b"\r\n").split(b"\r") for line in lines)
    for number, line in enumerate(separate, start=1):
        line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if not line.strip():
            continue
        if is_json is None:
            is_json = line.startswith(b'{"')
        place = f"{name}:{number}"
        yield _record(line, place) if is_json else _plain(line, place)


def _plain(line: bytes, place: str) -> Text | BadLine:
    try:
        return Text(line.decode("utf-8"), raw=line, place=place)
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte 0x{line[error.start]:02x} at position {error.start + 1})"
        return BadLine(place, problem, line)


def _record(line: bytes, place: str) -> Text | BadLine:
    decoded = _plain(line, place)
    if isinstance(decoded, BadLine):
        return decoded
    try:
        fields = Fields.of(parse_json(decoded.text))
        extra = {key: value for key, value in fields.record.items() if key not in {"text", "entities"}}
        return _checked(Text(fields.text("text"), extra, line, place))
    except DataError as error:
        return BadLine(place, str(error), line)


def _checked(text: Text) -> Text | BadLine:
    try:
        text.text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        return BadLine(text.place, f"the text is not valid Unicode (lone surrogate U+{code:04X})", text.raw)
    return text


# Chunks


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    items = iter(items)
    while chunk := list(islice(items, size)):
        yield chunk


def _arriving(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    """Yield items as they arrive: as many as are there, up to ``size``. They are read by another thread."""
    arrived: Queue[Item | Exception | None] = Queue(maxsize=2 * size)

    def read() -> None:
        end: Exception | None = None
        try:
            for item in items:
                arrived.put(item)
        except Exception as error:
            end = error
        arrived.put(end)

    Thread(target=read, daemon=True).start()
    while True:
        chunk: list[Item] = []
        item = _next(arrived)
        while item is not None and not isinstance(item, Exception):
            chunk.append(item)
            if len(chunk) == size:
                break
            try:
                item = arrived.get_nowait()
            except Empty:
                break
        if chunk:
            yield chunk
        if isinstance(item, Exception):
            raise item
        if item is None:
            return


def _next(queue: Queue[Item]) -> Item:
    """Wait for an item. Ctrl-C works on all platforms."""
    while True:
        try:
            return queue.get(timeout=0.5)
        except Empty:
            continue
