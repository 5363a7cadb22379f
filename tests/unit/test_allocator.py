"""Freed memory leaves the process, and torch is left as it was."""

from __future__ import annotations

import ctypes
import platform
import resource
from pathlib import Path

import numpy as np
import pytest
import torch

from spanshot import allocator
from spanshot.allocator import give_back_memory, steady

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


class InUse(ctypes.Structure):
    """What glibc's mallinfo2 gives."""

    _fields_ = [(f"field{number}", ctypes.c_size_t) for number in range(10)]

    @property
    def small_blocks(self) -> int:
        return self.field7


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs Linux with glibc")
@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="needs a torch with MKL")
def test_tensors_of_ever_new_shapes_leave_no_kernels_behind():
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("needs glibc 2.33")
    libc.mallinfo2.restype = InUse
    layer = torch.nn.GELU()

    def left_behind(lengths):
        before = libc.mallinfo2().small_blocks
        with torch.inference_mode():
            for length in lengths:
                layer(torch.ones(1, length, 384))
        return libc.mallinfo2().small_blocks - before

    for _ in steady(["once"]):
        left_behind(range(20, 40))
        assert left_behind(range(40, 240)) < 200_000


def test_a_steady_stream_gives_all_items_and_leaves_torch_as_it_was(monkeypatch):
    trims = []
    monkeypatch.setattr(allocator, "give_back_memory", lambda: trims.append(1))
    before = torch.backends.mkldnn.enabled
    assert list(steady(iter(range(1000)))) == list(range(1000))
    assert len(trims) == 1000 // 256
    stream = steady([1, 2])
    next(stream)
    stream.close()
    assert torch.backends.mkldnn.enabled == before
