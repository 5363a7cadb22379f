"""What becomes of freed memory: kept for training, which asks for the same large blocks step after step; given back
where a long stream of texts, each of another length, would leave it in pieces."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # as in glibc's malloc.h
_NEVER, _NONE = -1, 0
_AT_LEAST = 64 * 2**20


def keep_memory() -> bool:
    """Tell glibc to keep what is freed; whether it obeys. Elsewhere nothing is done.

    By default glibc maps large blocks one by one and hands each back when it is freed, so that every operation
    on a large tensor pays for fresh pages. Costs nothing but memory that the process has used before.
    """
    libc = _glibc()
    if libc is None:
        return False
    wanted = ((_MMAP_MAX, _NONE), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _AT_LEAST))
    obeyed = [libc.mallopt(name, value) == 1 for name, value in wanted]
    return all(obeyed)


def give_back_memory() -> bool:
    """Let glibc hand back what lies free between blocks in use; whether there was any. Elsewhere nothing is done."""
    libc = _glibc()
    return libc is not None and libc.malloc_trim(0) == 1


def _glibc() -> ctypes.CDLL | None:
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018 (other C libraries lack it)
    except (AttributeError, OSError, TypeError):
        return None
    return libc
