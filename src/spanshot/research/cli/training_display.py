"""Show the progress of a training run: a bar on a terminal, some lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from spanshot.cli.console import duration, percent
from spanshot.research.training.events import Evaluated, Event, Finished, Stepped

SMOOTHING = 0.95
PLAIN_LINES = 20
"""Lines per phase if the output is not a terminal."""


class TrainingDisplay:
    """Shows the events of a run."""

    def __init__(self, out: Console, opening: str = "", *, quiet: bool = False) -> None:
        self.out, self.quiet = out, quiet
        self._opening = opening  # printed with the first step, once it is clear that the run can start
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._phase = ""
        self._loss = 0.0
        self._best = ""
        self._since, self._from = time.monotonic(), 0

    def follow(self, events: Iterable[Event]) -> Finished | None:
        """Show events as they arrive; return the last one, if the run finished."""
        finished = None
        with self._live():
            for event in events:
                match event:
                    case Stepped():
                        self._stepped(event)
                    case Evaluated():
                        self._evaluated(event)
                    case Finished():
                        finished = event
        return finished

    @contextmanager
    def _live(self) -> Iterator[None]:
        if self.quiet or not self.out.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.out, speed_estimate_period=600) as self._bar:
            yield

    def _stepped(self, event: Stepped) -> None:
        if event.phase != self._phase:
            if self._opening and not self._phase and not self.quiet:
                self.out.print(self._opening, soft_wrap=True)
            self._begin(event)
        self._loss = SMOOTHING * self._loss + (1 - SMOOTHING) * event.loss
        numbers = f"loss {self._loss:.3f}  rate {event.rate:.1e}"
        if self._bar:
            self._bar.update(self._task, completed=event.step, numbers=f"{numbers}{self._best}")
        elif not self.quiet and (event.step % max(1, event.of // PLAIN_LINES) == 0 or event.step == event.of):
            pace = (time.monotonic() - self._since) / (event.step - self._from)
            remaining = duration(pace * (event.of - event.step))
            self.out.print(f"{event.phase} {event.step}/{event.of}  {numbers}  {remaining} left")

    def _begin(self, event: Stepped) -> None:
        self._phase, self._loss = event.phase, event.loss
        self._since, self._from = time.monotonic() - event.seconds, event.step - 1
        if self._bar:
            name = event.phase.replace("_", " ")
            self._task = self._bar.add_task(name, total=event.of, completed=event.step, numbers="")

    def _evaluated(self, event: Evaluated) -> None:
        if event.best:
            self._best = f"  best dev F1 {percent(event.dev_f1)}, O bias {event.o_bias:g}"
        if not self.quiet:
            self.out.print(
                f"step {event.step}: dev F1 {percent(event.dev_f1)} with O bias {event.o_bias:g}, "
                f"{percent(event.dev_f1_unbiased)} without{'  (best so far)' if event.best else ''}"
            )
