"""Which of its libraries torch computes by."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class _WithoutOneDnn:
    """torch's switch for oneDNN is one for all threads: the first to come turns it off, the last to go back again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = True

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = bool(torch.backends.mkldnn.enabled)
                torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                torch.backends.mkldnn.enabled = self._before  # type: ignore[assignment]


_without_onednn = _WithoutOneDnn()


@contextmanager
def no_kernels_per_shape() -> Iterator[None]:
    """Compute without oneDNN inside, where MKL does the large products; elsewhere nothing is changed.

    oneDNN compiles a kernel for each new shape of tensors, for GELU above all, and keeps a thousand of them. Texts come
    in all lengths: that costs time, and small kept blocks between large freed ones let memory grow.
    """
    if not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        yield
        return
    _without_onednn.enter()
    try:
        yield
    finally:
        _without_onednn.leave()
