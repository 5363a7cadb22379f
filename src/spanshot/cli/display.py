"""What the commands show: live in a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from spanshot.evaluation.report import METRICS
from spanshot.evaluation.runs import RunReport, spread_over
from spanshot.research.training.events import Evaluated, Event, Finished, Stepped

if TYPE_CHECKING:
    from spanshot.research.cli.commands import Setting

T = TypeVar("T")
SMOOTHING = 0.95
PLAIN_LINES = 20
"""Lines on steps that a phase gives where there is no terminal."""
NAMES: dict[str, str] = {"micro_f1": "micro F1 over all episodes", "mean_f1": "mean F1 over episodes"}


def console(*, stderr: bool = False) -> Console:
    """Where to write. Files and pipes get lines of 120 characters and no colours."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else 120)


def duration(seconds: float) -> str:
    """A time that people can read.

    >>> duration(59.6), duration(3725)
    ('1 min 0 s', '1 h 2 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def percent(part: float) -> str:
    """F1 and its like, as papers print them."""
    return f"{100 * part:.2f}"


class TrainingDisplay:
    """Shows a run's events as they come."""

    def __init__(self, out: Console, opening: str = "", *, quiet: bool = False) -> None:
        self.out, self.quiet = out, quiet
        self._opening = opening  # said with the first step: until then the run may yet turn out to be impossible
        self._bar: Progress | None = None
        self._task: Any = None
        self._phase = ""
        self._loss = 0.0
        self._best = ""
        self._since, self._from = time.monotonic(), 0

    @contextmanager
    def open(self) -> Iterator[TrainingDisplay]:
        """Live, if this is a terminal."""
        if self.quiet or not self.out.is_terminal:
            yield self
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.out, speed_estimate_period=600) as self._bar:
            yield self

    def follow(self, events: Iterable[Event]) -> Finished | None:
        """Show a run's events as they come; what it ended with."""
        ended = None
        with self.open():
            for event in events:
                match event:
                    case Stepped():
                        self.stepped(event)
                    case Evaluated():
                        self.evaluated(event)
                    case Finished():
                        ended = event
        return ended

    def stepped(self, event: Stepped) -> None:
        """A step was taken."""
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
            left = duration(pace * (event.of - event.step))
            self.out.print(f"{event.phase} {event.step}/{event.of}  {numbers}  {left} left")

    def _begin(self, event: Stepped) -> None:
        self._phase, self._loss = event.phase, event.loss
        self._since, self._from = time.monotonic() - event.seconds, event.step - 1
        if self._bar:
            name = event.phase.replace("_", " ")
            self._task = self._bar.add_task(name, total=event.of, completed=event.step, numbers="")

    def evaluated(self, event: Evaluated) -> None:
        """The dev split was looked at."""
        if event.best:
            self._best = f"  best dev F1 {percent(event.dev_f1)}, O bias {event.o_bias:g}"
        if not self.quiet:
            self.out.print(
                f"step {event.step}: dev F1 {percent(event.dev_f1)} with O bias {event.o_bias:g}, "
                f"{percent(event.dev_f1_unbiased)} without{'  (best so far)' if event.best else ''}"
            )

    def finished(self, run: Path, event: Finished, unbiased: float | None) -> None:
        """The run has ended."""
        if not event.best_step:
            self.out.print("The run ended without a look at the dev split, so there is no checkpoint.")
            return
        without = f"; {percent(unbiased)} without it" if unbiased is not None else ""
        early = ", stopped early" if event.stopped_early else ""
        self.out.print(
            f"Best dev F1 {percent(event.best_f1)} at step {event.best_step} with O bias {event.o_bias:g}{without}."
        )
        self.out.print(
            f"Trained for {duration(event.seconds)}{early}. Next: spanshot evaluate {shlex.quote(str(run))}",
            soft_wrap=True,
        )


@contextmanager
def counting(out: Console, *, quiet: bool = False) -> Iterator[Any]:
    """A bar for each of several runs; nothing where there is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, disable=quiet or not out.is_terminal, transient=True) as bar:
        tasks: dict[Path | str, Any] = {}

        def show(run: Path | str, done: int, of: int) -> None:
            if run not in tasks:
                tasks[run] = bar.add_task(str(run), total=of)
            bar.update(tasks[run], completed=done)

        yield show


def counted(out: Console, results: Iterable[T]) -> Iterator[T]:
    """The results as they come, with a count of them; nothing is shown where there is no terminal."""
    columns = (TextColumn("{task.completed:,} texts"), TimeElapsedColumn())
    with Progress(*columns, console=out, disable=not out.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        for result in results:
            yield result
            bar.advance(task)


def show_evaluation(out: Console, measured: Sequence[RunReport]) -> None:
    """A table for each run, and one over all if there are several."""
    for own in measured:
        out.print(_scores_of(own))
        out.print(_labels_of(own))
    if len(measured) > 1:
        table = Table("score", "mean ± standard deviation", title=f"{len(measured)} runs", title_justify="left")
        for name in (*NAMES, "precision", "recall", "f1_without_o_bias"):
            if over := spread_over(tuple(measured), name):
                title = NAMES.get(name, name.replace("f1_without_o_bias", "F1 without O bias"))
                table.add_row(title, f"{percent(over.mean)} ± {percent(over.deviation)}")
        out.print(table)


def _scores_of(own: RunReport) -> Table:
    report, plain = own.report, own.without_o_bias or own.report
    table = Table(
        "score",
        f"O bias {own.o_bias or 0:g}",
        "without O bias",
        title=f"{own.run}: {own.subject.split}",
        title_justify="left",
    )
    intervals, plain_intervals = report.confidence(), plain.confidence()
    for name in METRICS:
        title = NAMES[name]
        cells = [
            f"{percent(of.f1(name))} ({percent(ends[name].low)} to {percent(ends[name].high)})"
            for of, ends in ((report, intervals), (plain, plain_intervals))
        ]
        own_metric = name == own.metric
        table.add_row(f"{title} *" if own_metric else title, *cells, style="bold" if own_metric else None)
    for title, value in (("precision", "precision"), ("recall", "recall")):
        table.add_row(title, percent(getattr(report, value)), percent(getattr(plain, value)))
    for title, value in (("wrong boundary (FP-Span)", "fp_span"), ("wrong label (FP-Type)", "fp_type")):
        table.add_row(title, str(getattr(report.total, value)), str(getattr(plain.total, value)))
    table.caption = (
        f"* the metric of this corpus ({own.subject.data['kind']}). {len(report.episodes)} episodes; in brackets "
        f"95 % intervals over episodes drawn anew. A support set was learned in {1000 * own.seconds_to_learn:.2f} "
        f"ms and a query sentence tagged in {1000 * own.seconds_per_sentence:.2f} ms, on average."
    )
    table.caption_justify = "left"
    return table


def _labels_of(own: RunReport) -> Table:
    table = Table("label", "F1", "precision", "recall", "marked", "found", title="by label", title_justify="left")
    for label, counts in own.report.labels.items():
        scores = (counts.f1, counts.precision, counts.recall)
        table.add_row(label, *map(percent, scores), str(counts.tp + counts.fn), str(counts.tp + counts.fp))
    return table


def show_methods(out: Console, methods: Mapping[str, str]) -> None:
    """A line for each: name and idea."""
    width = max(map(len, methods))
    for name, idea in methods.items():
        out.print(f"[bold]{name:{width}}[/bold]  {idea}", soft_wrap=True)


def show_settings(out: Console, sections: dict[str, list[Setting]]) -> None:
    """Name, default and type of each setting by section, and what it does."""
    for title, own in sections.items():
        if title:
            out.print(f"\n{title}", style="bold", markup=False)
        for setting in own:
            known = f"= {setting.default}  ({setting.kind})" if setting.default else f"({setting.kind}, must be given)"
            out.print(f"{setting.name} {known}", markup=False)
            out.print(Padding(Text(setting.help, style="dim"), (0, 0, 0, 4), expand=False))
