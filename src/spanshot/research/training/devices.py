"""Devices and processes of a training run."""

from __future__ import annotations

from accelerate import Accelerator, DistributedDataParallelKwargs, PartialState


def default_accelerator() -> Accelerator:
    """Return an accelerator for the device and the processes that ``accelerate launch`` has set up.

    Mixed precision is ignored on a CPU: bfloat16 is slower and less exact there.
    """
    on_cpu = PartialState().device.type == "cpu"
    # Some weights have no part in some episodes, such as those of a head for labels that an episode lacks.
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)
    return Accelerator(mixed_precision="no" if on_cpu else None, kwargs_handlers=[unused])
