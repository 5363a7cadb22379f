"""Keeping freed memory in the process: training allocates the same large blocks step after step."""

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
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018 (other C libraries lack it)
        mallopt = libc.mallopt
    except (AttributeError, OSError, TypeError):
        return False
    wanted = ((_MMAP_MAX, _NONE), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _AT_LEAST))
    obeyed = [mallopt(name, value) == 1 for name, value in wanted]
    return all(obeyed)
