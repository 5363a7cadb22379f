"""Temporary folders in which a new checkpoint is written before it gets its name."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from pathlib import Path
from types import TracebackType

from spanshot.errors import CheckpointError
from spanshot.files import is_temporary, remove_stale, temporary_name
from spanshot.locks import is_open_file, try_lock
from spanshot.manifest import MANIFEST, Manifest, remove_stored

_A_DAY = 24 * 60 * 60


class ScratchFolder:
    """A hidden folder beside `target` that takes its name when it is complete; use it in a `with` block.

    Missing parents of `target` are created. Unless `move` succeeds, leaving the block removes them and the
    hidden folder again.
    """

    path: Path

    def __init__(self, target: Path) -> None:
        self._target = target
        self._created: list[Path] = []
        self._lock: int | None = None

    def __enter__(self) -> ScratchFolder:
        parent = self._target.parent
        try:
            for folder in reversed([parent, *parent.parents]):
                if not folder.exists():
                    folder.mkdir(exist_ok=True)
                    self._created.append(folder)
            remove_stale_folders(parent)
            self.path, self._lock = _create(parent)
            self._created.append(self.path)
        except BaseException:
            self._remove()
            raise
        return self

    def move(self) -> bool:
        """Rename the folder to its target. Return False if another process was faster."""
        if sys.platform == "win32":  # cannot rename a folder with open files
            self._unlock()
        try:
            self.path.rename(self._target)
        except OSError as error:
            in_the_way = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EACCES}
            if error.errno in in_the_way and self._target.exists():
                return False
            raise
        self._created.clear()
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        self._unlock()
        for folder in reversed(self._created):
            with contextlib.suppress(OSError):  # a parent is no longer empty
                _remove_ours(folder)

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_stale_folders(parent: Path) -> None:
    """Remove hidden folders that killed processes have left.

    A folder is removed only if it has the name of such a folder, belongs to the same user, is not locked by a process
    (on Windows: is a day old), and contains only files that match its manifest.
    """
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if is_temporary(entry.name) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_unused(Path(entry))


def _create(parent: Path) -> tuple[Path, int | None]:
    """Create a hidden folder and lock it, which tells others that it is in use."""
    while True:
        path = parent / temporary_name()
        path.mkdir()
        if sys.platform == "win32":
            return path, None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # taken for stale by another process
            continue
        try:
            held = try_lock(descriptor)
        except OSError:  # a file system without locks: nobody removes the folder
            held = True
        if held and is_open_file(descriptor, path):
            return path, descriptor
        os.close(descriptor)


def _remove_if_unused(path: Path) -> None:
    if sys.platform == "win32":
        if time.time() - path.stat().st_mtime > _A_DAY:
            _remove_ours(path)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid() and try_lock(descriptor):
            _remove_ours(path)
    finally:
        os.close(descriptor)


def _remove_ours(folder: Path) -> None:
    """Remove a folder that contains only spanshot's files; otherwise raise `OSError`."""
    remove_stale(folder)
    with contextlib.suppress(CheckpointError):
        manifest = Manifest.read(folder)
        for stored in (*manifest.files.values(), *manifest.unused):
            remove_stored(folder, stored)
        if [path.name for path in folder.iterdir()] == [MANIFEST]:
            (folder / MANIFEST).unlink()
    folder.rmdir()
