"""The number of threads that the engine computes with."""

from __future__ import annotations

import os
from pathlib import Path

from spanshot.errors import ConfigError

VARIABLE = "SPANSHOT_THREADS"
_VARIABLES = (VARIABLE, "OMP_NUM_THREADS")
_CPUS = Path("/sys/devices/system/cpu")


def default_threads() -> int:
    """Return ``SPANSHOT_THREADS``, else ``OMP_NUM_THREADS``, else the number of physical cores that may be used."""
    for name in _VARIABLES:
        text = os.environ.get(name, "").partition(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return int(text)
        if text and name == VARIABLE:
            raise ConfigError(f"{VARIABLE} must be a whole number from 1 on; found {text!r}")
    return physical_cores()


def physical_cores() -> int:
    """Return the number of physical cores among the processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    usable = affinity(0) if affinity else set(range(os.cpu_count() or 1))
    cores = set()
    for number in usable:
        siblings = _CPUS / f"cpu{number}" / "topology" / "thread_siblings_list"
        try:
            cores.add(siblings.read_text(encoding="ascii").strip())
        except OSError:
            cores.add(str(number))
    return max(1, len(cores))
