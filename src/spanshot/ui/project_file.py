"""The project file: one JSON object per line, only ever appended to.

A line is written and synced to the disk before its action is confirmed. So a crash can only cut the last line, which
nobody has been told of: readers ignore it, and the next writer removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from spanshot.errors import DataError
from spanshot.formats.json_values import JsonObject, is_json, json_line
from spanshot.formats.project import SUFFIX, is_project
from spanshot.locks import locked

VERSION = 1
HEAD: JsonObject = {"do": "project", "version": VERSION}


def project_path(path: Path) -> Path:
    """Return the project file that belongs to a text file.

    >>> project_path(Path("notes.txt")).name, project_path(Path("a.spanshot.jsonl")).name
    ('notes.spanshot.jsonl', 'a.spanshot.jsonl')
    """
    return path if is_project(path) else path.with_name((path.stem or path.name) + SUFFIX)


def read_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield the lines of a project with their numbers; a torn last line is left out."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError.at(path, None, "no such file; check the path") from None
    except OSError as error:
        raise DataError.at(path, None, f"cannot be read: {error.strerror}") from error
    return parse_lines(path, content[: whole_length(content)])


def parse_lines(path: Path, content: bytes) -> Iterator[tuple[int, JsonObject]]:
    """Yield the lines of a project with their numbers."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            raise DataError.at(path, number, "is not JSON; was the project file edited?") from None
        if not isinstance(record, dict) or not isinstance(record.get("do"), str):
            raise DataError.at(path, number, "is not a line of a project: the key 'do' is missing")
        if record["do"] == "project" and record.get("version") != VERSION:
            raise DataError.at(path, number, f"has version {record.get('version')}; this release reads {VERSION}")
        yield number, record


def whole_length(content: bytes) -> int:
    r"""Return the length of the content without a torn last line.

    >>> whole_length(b'{"do": "undo"}\n{"do": "re'), whole_length(b'{"do": "undo"}')
    (15, 14)
    """
    end = content.rfind(b"\n") + 1
    rest = content[end:]
    return len(content) if rest and is_json(rest.decode("utf-8", "replace")) else end


class ProjectFile:
    """A project file that is open for appending. No other process can open it for appending meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = contextlib.ExitStack()
        try:
            self._stack.enter_context(locked(path.with_name(f".{path.name}.lock"), timeout=0))
        except TimeoutError:
            message = "is open in another `spanshot ui`; close that one first, or use its page"
            raise DataError.at(path, None, message) from None
        except OSError as error:
            raise DataError.at(path, None, f"cannot be opened for writing: {error.strerror}") from error
        try:
            content = path.read_bytes() if path.exists() else b""
            whole = content[: whole_length(content)]
            self.lines = list(parse_lines(path, whole))
            self._file = self._stack.enter_context(path.open("ab", buffering=0))
        except OSError as error:
            self.close()
            raise DataError.at(path, None, f"cannot be opened for writing: {error.strerror}") from error
        except BaseException:
            self.close()
            raise
        if len(whole) < len(content):
            self._file.truncate(len(whole))  # a torn last line
        if whole and not whole.endswith(b"\n"):
            self._write(b"\n")
        if not self.lines:
            self.append(HEAD)

    def append(self, *records: JsonObject) -> None:
        """Append lines and wait until they are on the disk."""
        self._write("".join(map(json_line, records)).encode("utf-8"))

    def _write(self, content: bytes) -> None:
        before = os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(content) != len(content):
                raise OSError("the disk is full")
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(before)
            raise DataError.at(self.path, None, f"the action was not saved: {error.strerror or error}") from error

    def close(self) -> None:
        """Close the file and release the lock."""
        self._stack.close()
