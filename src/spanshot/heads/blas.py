"""Keep numpy's matrix products on one thread while the head computes.

The products of a head are small: more threads spend their time waiting for each other, above all when other programs
use the cores. Afterwards numpy has its threads again. While one thread of the process has set the limit, others cannot,
and compute as numpy is set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy  # noqa: F401 - its libraries must be loaded to be found
from threadpoolctl import ThreadpoolController

Function = TypeVar("Function", bound=Callable[..., object])

one_thread: Callable[[Function], Function] = ThreadpoolController().wrap(limits=1, user_api="blas")
"""Makes a function limit BLAS to one thread while it runs."""
