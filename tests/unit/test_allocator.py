"""Whether freed memory really leaves the process."""

from __future__ import annotations

import platform
import resource
from pathlib import Path

import numpy as np
import pytest

from spanshot.allocator import give_back_memory

STATUS = Path("/proc/self/statm")


def resident() -> int:
    return int(STATUS.read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs Linux with glibc")
def test_what_lies_free_between_blocks_in_use_is_given_back():
    size = 100_000
    blocks = [np.ones(size, dtype=np.uint8) for _ in range(1000)]
    kept = blocks[::2]
    del blocks
    before = resident()
    assert give_back_memory()
    assert before - resident() > 400 * size
    assert all(block.all() for block in kept)
