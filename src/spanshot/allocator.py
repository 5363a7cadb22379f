"""Control how glibc handles freed memory: keep it for training, or return it during long streams of texts.

Importing this module changes nothing. The research commands call `keep_memory`; ``spanshot tag`` uses
`steady`, as may any program that tags texts for hours. Both do nothing on other systems than Linux with glibc.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # as in glibc's malloc.h
_NEVER, _NONE = -1, 0
_AT_LEAST = 64 * 2**20
_ITEMS_BETWEEN_TRIMS = 256


def keep_memory() -> bool:
    """Make glibc keep freed memory; return whether it does.

    By default, glibc maps large blocks one by one and returns each to the system when it is freed, so every operation
    on a large tensor pays for new pages. Training asks for the same large blocks in every step.
    """
    libc = _glibc()
    if libc is None:
        return False
    options = ((_MMAP_MAX, _NONE), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _AT_LEAST))
    obeyed = [libc.mallopt(name, value) == 1 for name, value in options]
    return all(obeyed)


def steady(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, such as the results of ``tagger.pipe(texts)``, and keep the memory of the process flat meanwhile.

    Texts of ever new lengths fragment the memory. So free memory is returned to the system now and then, and torch does
    not use oneDNN, which keeps a compiled kernel for each shape of tensors (in all threads of the process).
    """
    with _without_onednn():
        for number, item in enumerate(items, start=1):
            yield item
            if number % _ITEMS_BETWEEN_TRIMS == 0:
                give_back_memory()


@contextlib.contextmanager
def _without_onednn() -> Iterator[None]:
    torch = sys.modules.get("torch")
    if torch is None or not torch.backends.mkl.is_available():
        yield
        return
    enabled = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = enabled


def give_back_memory() -> bool:
    """Make glibc return free memory to the system; return whether there was any."""
    libc = _glibc()
    return libc is not None and libc.malloc_trim(0) == 1


def _glibc() -> ctypes.CDLL | None:
    try:
        libc = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    return libc if hasattr(libc, "gnu_get_libc_version") else None
