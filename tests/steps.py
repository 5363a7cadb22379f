"""Count the steps of a call, to test how its cost grows without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import CodeType, FrameType

_TOOL = 4
"""A tool number of `sys.monitoring` that no debugger or profiler uses."""


def steps(call: Callable[[], object]) -> int:
    """Return the number of Python instructions that a call executes, apart from those of the standard library's C."""
    counter = count()
    # From Python 3.12 on, opcode tracing misses the first call of a function.
    with _monitored(counter) if sys.version_info >= (3, 12) else _traced(counter):
        call()
    return next(counter)


@contextmanager
def _traced(counter: Iterator[int]) -> Iterator[None]:
    def local(frame: FrameType, event: str, argument: object):
        if event == "opcode":
            next(counter)
        return local

    def trace(frame: FrameType, event: str, argument: object):
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return local

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _monitored(counter: Iterator[int]) -> Iterator[None]:
    def on_instruction(code: CodeType, offset: int) -> None:
        next(counter)

    monitoring = sys.monitoring
    monitoring.use_tool_id(_TOOL, "steps")
    monitoring.register_callback(_TOOL, monitoring.events.INSTRUCTION, on_instruction)
    monitoring.set_events(_TOOL, monitoring.events.INSTRUCTION)
    try:
        yield
    finally:
        monitoring.set_events(_TOOL, monitoring.events.NO_EVENTS)
        monitoring.free_tool_id(_TOOL)
