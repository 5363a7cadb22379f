"""Write files safely: a reader sees the old file or the whole new one, whatever interrupts the writer."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, Literal, TextIO, overload

from spanshot.errors import DataError
from spanshot.locks import is_open_file, try_lock

_TEMPORARY = re.compile(r"\.spanshot-[0-9a-f]{16}\.tmp")
_OPEN_FILES = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
_A_DAY = 24 * 60 * 60
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


@overload
def replacing(
    path: str | Path, mode: Literal["w"] = "w", *, clean: bool = True
) -> contextlib.AbstractContextManager[TextIO]: ...
@overload
def replacing(
    path: str | Path, mode: Literal["wb"], *, clean: bool = True
) -> contextlib.AbstractContextManager[BinaryIO]: ...
def replacing(
    path: str | Path, mode: str = "w", *, clean: bool = True
) -> contextlib.AbstractContextManager[IO[str] | IO[bytes]]:
    """Open a file for writing that takes the place of `path` when the `with` block ends without an error.

    Text is written as UTF-8 with `\\n` line ends. Everything goes to a hidden temporary file in the same folder
    first; an exception removes it and leaves the old file as it was. Symbolic links are followed: the file that a
    link points to is replaced, the link stays. Anything that exists and is not a regular file, such as a device or a
    named pipe, is written to directly.

    Files that killed processes have left in the folder are removed first. That lists the folder; without ``clean``, it
    is not done.
    """
    return _replacing(Path(path), mode, clean)


def write_text(path: str | Path, parts: Iterable[str]) -> None:
    """Write strings to a UTF-8 file, replacing it only when all of them are written."""
    with replacing(path) as file:
        file.writelines(parts)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes to a file, replacing it only when all of them are written."""
    with replacing(path, "wb") as file:
        file.write(content)


def temporary_name() -> str:
    """Return a hidden file name that nobody else uses."""
    return f".spanshot-{secrets.token_hex(8)}.tmp"


def is_temporary(name: str) -> bool:
    """Return whether `temporary_name` gives such names."""
    return _TEMPORARY.fullmatch(name) is not None


def same_file(first: str | Path, second: str | Path) -> bool:
    """Return whether both paths name the same existing file, also through links."""
    try:
        return Path(first).samefile(second)
    except OSError:
        return False


def is_open_descriptor(path: Path) -> bool:
    """Return whether the path names an open file of this process, such as `/dev/stdout`: it must not be replaced."""
    return str(path).startswith(_OPEN_FILES)


@contextlib.contextmanager
def _replacing(path: Path, mode: str, clean: bool) -> Iterator[IO[str] | IO[bytes]]:
    names: tuple[str | None, ...] = (None, str(path))
    try:
        status = _stat(path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise DataError.at(path, None, "cannot be written: it is a folder; name a file")
        if status is not None and (not stat.S_ISREG(status.st_mode) or is_open_descriptor(path)):
            with _open(os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY), mode) as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise DataError.at(path, None, f"cannot be written: the folder {target.parent} does not exist")
        if status is not None and not os.access(target, os.W_OK):
            raise DataError.at(path, None, "cannot be written: it is read-only")
        if clean:
            remove_stale(target.parent)
        descriptor, temporary = _create(target.parent)
        names = (*names, str(temporary))
        try:
            with _open(descriptor, mode) as file:
                if status is not None:
                    temporary.chmod(stat.S_IMODE(status.st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
                if sys.platform != "win32":  # replaced before it is closed, and thereby unlocked
                    temporary.replace(target)
            if sys.platform == "win32":  # Windows cannot rename an open file
                _replace_when_free(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.filename not in names:  # the block failed at another file
            raise
        raise DataError.at(path, None, f"cannot be written: {error.strerror or error}") from error
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise DataError.at(path, None, f"cannot be written: {character!a} is not valid Unicode") from error


def _stat(path: Path) -> os.stat_result | None:
    """Return the status of the file that `path` leads to, or None if there is none."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # a null byte, or half of a surrogate pair
        raise DataError(f"{str(path)!a} is not a file name; check the path") from None


def _open(descriptor: int, mode: str) -> IO[str] | IO[bytes]:
    if "b" in mode:
        return open(descriptor, "wb")
    return open(descriptor, "w", encoding="utf-8", newline="\n")


def _replace_when_free(temporary: Path, target: Path) -> None:
    """Replace a file on Windows, where that fails for as long as another process reads it."""
    for _ in range(50):
        try:
            temporary.replace(target)
        except PermissionError:
            time.sleep(0.02)
        else:
            return
    temporary.replace(target)


def _create(folder: Path) -> tuple[int, Path]:
    """Create a temporary file, locked for as long as it is open."""
    while True:
        path = folder / temporary_name()
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY | _NOFOLLOW, 0o666)
        except FileExistsError:
            continue
        if _is_locked(descriptor) and is_open_file(descriptor, path):
            return descriptor, path
        os.close(descriptor)  # taken for stale, and removed, by another process before it was locked


def _is_locked(descriptor: int) -> bool:
    if sys.platform == "win32":  # nobody removes an open file there
        return True
    try:
        return try_lock(descriptor)
    except OSError:  # a file system without locks: nobody removes the file
        return True


def remove_stale(folder: Path) -> None:
    """Remove temporary files that killed processes have left in a folder.

    A file is removed only if `temporary_name` made its name, it belongs to the same user, and no process holds its
    lock. Windows has no such lock, but does not remove open files; there the file must also be a day old.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_temporary(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_unused(Path(entry))


def _remove_if_unused(path: Path) -> None:
    if sys.platform == "win32":
        if time.time() - path.stat().st_mtime > _A_DAY:
            path.unlink()
        return
    descriptor = os.open(path, os.O_RDWR | _NOFOLLOW | _BINARY)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid() and try_lock(descriptor):
            path.unlink()
    finally:
        os.close(descriptor)
