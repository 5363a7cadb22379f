"""Read each file of a corpus once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
KEPT_FILES = 8
"""How many files each reader keeps in memory: the splits of a corpus, with room to spare."""


def read_once(read: Callable[[Path], Sequence[Item]]) -> Callable[[str | Path], list[Item]]:
    """Wrap a reader so that it reads a file again only if the file has changed.

    Training, pretraining, evaluation and the checks before them ask for the same files.
    """

    @lru_cache(maxsize=KEPT_FILES)
    def stored(path: Path, *_: int) -> tuple[Item, ...]:
        return tuple(read(path))

    @wraps(read)
    def cached(path: str | Path) -> list[Item]:
        path = Path(path)
        try:
            status = path.stat()
        except OSError:
            return list(read(path))  # the reader reports the problem
        return list(stored(path, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size))

    return cached
