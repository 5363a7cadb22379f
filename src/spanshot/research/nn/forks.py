"""Let a forked child of a process that has used torch compute as well."""

from __future__ import annotations

import os
from functools import lru_cache

import torch


@lru_cache(maxsize=1)
def allow_forks() -> None:
    """Make forked children compute in one thread, from now on.

    A fork does not copy threads. Without this, a child that computes waits for those of its parent forever. Its results
    are the same as the parent's; to use several threads, spawn processes instead.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_use_one_thread)


def _use_one_thread() -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
