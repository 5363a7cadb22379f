"""Print to a terminal safely: control characters in text, labels and file names are shown, never executed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from typing_extensions import override

Item = TypeVar("Item")
Count = Callable[[str, int, int], None]
"""Called with the name of a job, the steps done and the number of steps."""

_WIDTH = 120
"""Line width of files and pipes."""
# C0 controls except tab and line feed, DEL, C1 controls, line separators, direction marks and lone surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Replace control characters, such as those of terminal escape sequences, by their escaped form.

    >>> visible("red: \x1b[31m\u202e")
    'red: \\x1b[31m\\u202e'
    """

    def escaped(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _CONTROL.sub(escaped, text)


class SafeConsole(Console):
    """A console that passes no control character of the content on to the terminal."""

    @override
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console(*, stderr: bool = False) -> Console:
    """Return a console. Files and pipes get lines of 120 characters without colours."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH
    return SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def note(message: str) -> None:
    """Print one line to standard error."""
    print(f"spanshot: {visible(' '.join(message.splitlines()))}", file=sys.stderr, flush=True)


def percent(share: float) -> str:
    """Format F1 and other shares as papers print them.

    >>> percent(0.61237)
    '61.24'
    """
    return f"{100 * share:.2f}"


def duration(seconds: float) -> str:
    """Format a duration.

    >>> duration(59.6), duration(3725)
    ('1 min 0 s', '1 h 2 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def progress_bars(*, quiet: bool = False) -> Iterator[Count]:
    """Show a bar on standard error for each job that is counted; nothing if it is not a terminal."""
    out = console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, disable=quiet or not out.is_terminal, transient=True) as bars:
        tasks = {}

        def count(job: str, done: int, total: int) -> None:
            if job not in tasks:
                tasks[job] = bars.add_task(visible(job), total=total)
            bars.update(tasks[job], completed=done)

        yield count


def counted(items: Iterable[Item], *, quiet: bool = False) -> Iterator[Item]:
    """Pass items on and show their number on standard error; nothing if it is not a terminal."""
    out = console(stderr=True)
    columns = (TextColumn("{task.completed:,} texts"), TimeElapsedColumn())
    with Progress(*columns, console=out, disable=quiet or not out.is_terminal, transient=True) as bars:
        task = bars.add_task("", total=None)
        for item in items:
            yield item
            bars.advance(task)
