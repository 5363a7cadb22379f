"""Count the steps of a call, to test how its cost grows without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def steps(call: Callable[[], object]) -> int:
    """Return the number of Python instructions that a call executes, apart from those of the standard library's C."""
    count = 0

    def local(frame: FrameType, event: str, argument: object):
        nonlocal count
        count += event == "opcode"
        return local

    def trace(frame: FrameType, event: str, argument: object):
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return local

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
