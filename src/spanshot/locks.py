"""Lock files between processes, on every platform."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

POLL_SECONDS = 0.05


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process. Return False if another process holds the lock.

    The system releases the lock when the file is closed or the process ends, however it ends. On file systems
    without locks, raise `OSError`.
    """
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def is_open_file(descriptor: int, path: Path) -> bool:
    """Return whether `path` still names the open file: another process may have removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock file `path`; remove it afterwards.

    Raise `TimeoutError` if another process does not release it within `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        try:
            descriptor = os.open(path, flags, 0o666)
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() >= deadline:  # on Windows: is being removed
                raise
            time.sleep(POLL_SECONDS)
            continue
        if try_lock(descriptor) and is_open_file(descriptor, path):
            break
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{path} is locked by another process")
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        if sys.platform != "win32":  # Windows cannot remove an open file
            path.unlink(missing_ok=True)
        os.close(descriptor)
        if sys.platform == "win32":
            with contextlib.suppress(OSError):  # another process has opened it and waits
                path.unlink(missing_ok=True)
