"""Devices and processes of a training run, and the precision that a device can compute in."""

from __future__ import annotations

import os

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs, PartialState
from accelerate.utils import parse_flag_from_env

from spanshot.errors import ConfigError

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
"""Values of the setting `precision`."""
_LAUNCHED = {"fp16": "float16", "bf16": "bfloat16"}  # values of `accelerate launch --mixed_precision`


def processes() -> PartialState:
    """Return the rank and the device of this process, as `accelerate launch` or `torchrun` has set them up.

    On a machine without a GPU, processes work together on the CPU. Accelerate alone would run them independently of
    one another.
    """
    return PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available())


def default_accelerator() -> Accelerator:
    """Return an accelerator for the processes and devices of this run.

    It computes in single precision; `Stage` applies the setting `precision`.
    """
    processes()
    # Some weights have no part in some episodes, such as those of a head for labels that an episode lacks.
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)
    return Accelerator(mixed_precision="no", kwargs_handlers=[unused])


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse a precision that the device lacks, or that differs from the one `accelerate launch` was given."""
    supported = [name for name in DTYPES if _supports(device, name)]
    if precision not in supported:
        choices = " or ".join(supported)
        raise ConfigError(
            f"train.precision: {precision} is not supported on this device ({device.type}); use {choices}"
        )
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if device.type != "cpu" and launched in _LAUNCHED and precision != _LAUNCHED[launched]:
        raise ConfigError(
            f"accelerate was launched with mixed precision {launched}, but train.precision is {precision}; "
            f"set train.precision={_LAUNCHED[launched]}, or launch with --mixed_precision no"
        )


def _supports(device: torch.device, precision: str) -> bool:
    if precision == "float32" or device.type == "xpu":
        return True
    if device.type == "cuda":
        return precision == "float16" or torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "mps":
        return precision == "bfloat16" and torch.backends.mps.is_macos_or_newer(14, 0)
    return device.type == "cpu" and precision == "bfloat16"
