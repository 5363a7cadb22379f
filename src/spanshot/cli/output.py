"""Write results line by line: to standard output, or to a file that is replaced only when all of them are written.

An interrupted job can be continued. Results go to a hidden file next to the output, ``.NAME.spanshot-partial``. After
each group of texts, ``.NAME.spanshot-progress`` records how many inputs are done, a digest of those inputs, and how
many bytes of results belong to them. ``--resume`` cuts the results back to that length, skips the inputs that are
done, checks that they are the same as before, and goes on. At the end the partial file replaces the output, so a
reader of the output sees the old results or all the new ones. Results and inputs are matched by their order; nothing
is tagged twice, and a line cut off by a crash is written again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from spanshot.cli.console import visible
from spanshot.errors import ConfigError, DataError
from spanshot.files import is_open_descriptor, replacing, same_file, write_text
from spanshot.json_text import Fields, JsonValue, parse_json, to_json
from spanshot.locks import is_open_file, try_lock


def refuse_same_file(option: str, output: Path | None, inputs: Iterable[Path]) -> None:
    """Reject an output that is also an input, under any name or link: the input would be lost."""
    if output is None:
        return
    for path in inputs:
        if same_file(output, path) or (str(path) == "-" and _is_stdin(output)):
            raise ConfigError(f"{option} {output} is also an input; name another file")


def refuse_stdout_as_input(inputs: Iterable[Path]) -> None:
    """Reject output to a file that is read at the same time, as in ``spanshot tag -i a.txt >> a.txt``."""
    with contextlib.suppress(OSError, ValueError):
        output = os.fstat(sys.stdout.fileno())
        if not stat.S_ISREG(output.st_mode):
            return
        for path in inputs:
            if path.is_file() and os.path.samestat(output, path.stat()):
                raise ConfigError(f"{path} is both input and output; print to another file")


def _is_stdin(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), path.stat())
    except (OSError, ValueError):
        return False


class Results(Protocol):
    """A place for results, one line each."""

    def write(self, line: str) -> None:
        """Add a line."""

    def add(self, text: str) -> None:
        """Add text as it is, with its line ends."""

    def save(self, inputs: int, digest: str) -> None:
        """Record that the results of the first ``inputs`` inputs, which have this digest, are written."""

    def finish(self) -> None:
        """Complete the output."""


class Printed:
    """Results on standard output. On a terminal, control characters are shown in escaped form."""

    def __init__(self) -> None:
        self._escape = sys.stdout.isatty()

    def write(self, line: str) -> None:
        """Print a line at once."""
        self.add(f"{line}\n")

    def add(self, text: str) -> None:
        """Print text at once."""
        print(visible(text) if self._escape else text, end="", flush=True)

    def save(self, inputs: int, digest: str) -> None:
        """Do nothing: printed lines cannot be continued."""

    def finish(self) -> None:
        """Do nothing: all lines are printed."""


class WrittenDirectly:
    """Results in something that cannot be replaced: a named pipe, a device, or an open file such as `/dev/stdout`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", newline="\n")

    def write(self, line: str) -> None:
        """Write a line at once."""
        self.add(f"{line}\n")

    def add(self, text: str) -> None:
        """Write text at once."""
        self._file.write(text)
        self._file.flush()

    def save(self, inputs: int, digest: str) -> None:
        """Do nothing: such a file cannot be continued."""

    def finish(self) -> None:
        """Close it."""
        self._file.close()


@dataclass(frozen=True)
class Progress:
    """The progress of an earlier job."""

    inputs: int = 0
    """Number of inputs whose results are written."""
    digest: str = ""
    """Digest of those inputs."""
    bytes: int = 0
    """Length of their results."""


class PartialFile:
    """Results in a file, as described above. ``done`` is the progress of an earlier job."""

    def __init__(self, path: Path, job: str, *, resume: bool) -> None:
        self._path, self._job = path, job
        self._target = _target(path)
        self._partial = self._target.with_name(f".{self._target.name}.spanshot-partial")
        self._progress = self._target.with_name(f".{self._target.name}.spanshot-progress")
        self.done = self._read_progress() if resume else Progress()
        self.discarded = 0 if resume else self._left_over()
        self._file = self._open()
        self._saved = self.done.inputs

    def write(self, line: str) -> None:
        """Add a line."""
        self.add(f"{line}\n")

    def add(self, text: str) -> None:
        """Add text as it is."""
        self.add_bytes(text.encode())

    def add_bytes(self, content: bytes) -> None:
        """Add bytes."""
        with self._named_errors():
            self._file.write(content)

    def save(self, inputs: int, digest: str) -> None:
        """Record the progress. The results are flushed first, so the record is never ahead of them."""
        with self._named_errors():
            self._file.flush()
        record: dict[str, JsonValue] = {
            "job": self._job,
            "inputs": inputs,
            "digest": digest,
            "bytes": self._file.tell(),
        }
        write_text(self._progress, [to_json(record), "\n"])
        self._saved = inputs

    def finish(self) -> None:
        """Replace the output by the results."""
        with self._named_errors():
            self._file.flush()
            os.fsync(self._file.fileno())
            with contextlib.suppress(FileNotFoundError):
                self._partial.chmod(stat.S_IMODE(self._target.stat().st_mode))
            self._progress.unlink(missing_ok=True)
            if sys.platform == "win32":  # an open file cannot be renamed there
                self._file.close()
            self._partial.replace(self._target)
            self._file.close()

    def finish_as(self, convert: Callable[[BinaryIO, BinaryIO], None]) -> None:
        """Replace the output by another form of the results; ``convert`` reads the results and writes that form."""
        with self._named_errors():
            self._file.flush()
            self._file.seek(0)
            with replacing(self._target, "wb") as output:
                convert(self._file, output)
            self._progress.unlink(missing_ok=True)
            if sys.platform == "win32":  # an open file cannot be removed there
                self._file.close()
            self._partial.unlink(missing_ok=True)
            self._file.close()

    def stop(self) -> int:
        """Close the files after an error. Keep them if they contain results; return the number of inputs done."""
        with contextlib.suppress(OSError):
            self._file.close()
        if not self._saved:
            self._progress.unlink(missing_ok=True)
            self._partial.unlink(missing_ok=True)
        return self._saved

    def _open(self) -> BinaryIO:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        with self._named_errors():
            file = os.fdopen(os.open(self._partial, flags, 0o666), "r+b")
        if not _lock(file.fileno(), self._partial):
            file.close()
            raise DataError.at(self._path, None, "cannot be written: another spanshot process is writing it")
        if os.fstat(file.fileno()).st_size < self.done.bytes:
            file.close()
            raise DataError.at(self._partial, None, "shorter than recorded; remove it and run without --resume")
        file.truncate(self.done.bytes)
        file.seek(self.done.bytes)
        if not self.done.inputs:
            self._progress.unlink(missing_ok=True)
        return file

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError.at(self._path, None, f"cannot be written: {error.strerror or error}") from error

    def _read_progress(self) -> Progress:
        if not self._progress.is_file():
            return Progress()
        try:
            fields = Fields.of(parse_json(self._progress.read_text(encoding="utf-8")))
            job = fields.text("job")
            progress = Progress(fields.integer("inputs"), fields.text("digest"), fields.integer("bytes"))
            if min(progress.inputs, progress.bytes) < 0:
                raise DataError("negative numbers")
        except (DataError, UnicodeDecodeError) as error:
            raise DataError.at(self._progress, None, f"damaged ({error}); remove it and run without --resume") from None
        if job != self._job:
            raise ConfigError(
                f"cannot resume {self._path}: options, examples or model differ from those of the interrupted job; "
                "use the same ones, or leave out --resume to start again"
            )
        return progress

    def _left_over(self) -> int:
        """Return the number of results of an interrupted job that is not resumed."""
        with contextlib.suppress(DataError, OSError, UnicodeDecodeError, ConfigError):
            return Fields.of(parse_json(self._progress.read_text(encoding="utf-8"))).integer("inputs")
        return 0


def _lock(descriptor: int, path: Path) -> bool:
    try:
        return try_lock(descriptor) and is_open_file(descriptor, path)
    except OSError:  # a file system without locks
        return True


def _target(path: Path) -> Path:
    """Return the file to replace, following links."""
    target = Path(os.path.realpath(path))
    if path.is_dir():
        raise DataError.at(path, None, "cannot be written: it is a folder; name a file")
    if not target.parent.is_dir():
        raise DataError.at(path, None, f"cannot be written: the folder {target.parent} does not exist")
    if target.exists() and not os.access(target, os.W_OK):
        raise DataError.at(path, None, "cannot be written: it is read-only")
    return target


def open_results(path: Path | None, job: str, *, resume: bool) -> Results:
    """Open the place for results: standard output, a file, or something that is written to directly."""
    if path is None:
        return Printed()
    if path.exists() and not path.is_dir() and (not path.is_file() or is_open_descriptor(path)):
        return WrittenDirectly(path)
    return PartialFile(path, job, resume=resume)


def fingerprint(options: Sequence[object], files: Iterable[Path]) -> str:
    """Return a digest of a job: its options and the content of its files. Of folders, names, sizes and times count."""
    digest = hashlib.sha256(json.dumps([str(option) for option in options]).encode())
    for path in files:
        if path.is_dir():
            for entry in sorted(entry for entry in path.rglob("*") if entry.is_file()):
                status = entry.stat()
                line = f"{entry.relative_to(path)} {status.st_size} {status.st_mtime_ns}\n"
                digest.update(line.encode(errors="replace"))
        else:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
