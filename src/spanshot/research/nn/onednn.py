"""Linear layers computed by oneDNN, on processors where torch's default library uses half of their width.

torch multiplies matrices with MKL, which has no AVX-512 kernels for AMD processors; oneDNN, which torch contains as
well, has. It compiles a kernel for each shape, so callers round the number of rows up with `rounded_up`.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from typing_extensions import override


def linear(layer: nn.Linear, rows: Tensor) -> Tensor:
    """Apply a linear layer to rows, by oneDNN where that is faster. [rows, in] -> [rows, out]"""
    product: Tensor
    if not can_use_onednn(rows):
        product = layer(rows)
        return product
    product = _OneDnnLinear.apply(rows, layer.weight, layer.bias)  # type: ignore[no-untyped-call]
    return product


def can_use_onednn(rows: Tensor) -> bool:
    """Whether `linear` computes these rows by oneDNN."""
    on_cpu = rows.device.type == "cpu" and rows.dtype == torch.float32
    return on_cpu and not torch.is_autocast_enabled("cpu") and _is_faster()


def rounded_up(count: int) -> int:
    """Return a number of rows of which there are few: at most 1/16 more than ``count``.

    >>> [rounded_up(count) for count in (15, 100, 417, 2000)]
    [16, 104, 432, 2048]
    """
    step = max(8, 1 << max(0, count.bit_length() - 5))
    return -(-count // step) * step


@lru_cache(maxsize=1)
def _is_faster() -> bool:
    """Whether this is an AMD processor with AVX-512."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512" or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    info = Path("/proc/cpuinfo")
    return "AuthenticAMD" in (info.read_text() if info.is_file() else platform.processor())


def _product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``rows @ weight.T + bias``."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return product


class _OneDnnLinear(torch.autograd.Function):
    @staticmethod
    @override
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return _product(rows, weight, bias)

    @staticmethod
    @override
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        of_rows = _product(gradient, weight.t()) if wanted[0] else None
        of_weight = _product(gradient.t(), rows.t()) if wanted[1] else None
        of_bias = gradient.sum(0) if wanted[2] else None
        return of_rows, of_weight, of_bias
