"""Whether texts of all lengths leave no kernels behind, and torch is left as it was."""

from __future__ import annotations

import ctypes
import platform

import pytest
import torch

from spanshot.research.nn.kernels import no_kernels_per_shape


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

    with no_kernels_per_shape():
        left_behind(range(20, 40))
        assert left_behind(range(40, 240)) < 200_000


def test_torch_is_left_as_it_was_after_an_error():
    before = torch.backends.mkldnn.enabled
    with pytest.raises(RuntimeError), no_kernels_per_shape():
        raise RuntimeError
    assert torch.backends.mkldnn.enabled == before


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="needs a torch with MKL")
def test_torch_is_left_as_it_was_by_threads_that_overlap():
    before = torch.backends.mkldnn.enabled
    first, second = no_kernels_per_shape(), no_kernels_per_shape()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not torch.backends.mkldnn.enabled
    second.__exit__(None, None, None)
    assert torch.backends.mkldnn.enabled == before
