"""What a comparison shows: which of how many runs is under way, and at the end one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spanshot.cli.display import TrainingDisplay, counting, duration, percent
from spanshot.evaluation.runs import ComparisonReport, ConfigReport

if TYPE_CHECKING:
    from spanshot.research.experiments.compare import PlannedRun
    from spanshot.research.training.events import Event

METRICS = {"micro_f1": "micro F1", "mean_f1": "mean F1"}
NONE = "none"


class ComparisonDisplay:
    """Shows the runs of a comparison as they are trained and evaluated."""

    def __init__(self, out: Console, *, quiet: bool = False) -> None:
        self.out, self.quiet = out, quiet

    def train(self, runs: Sequence[PlannedRun], run: PlannedRun, events: Iterable[Event], *, goes_on: bool) -> None:
        """Show a run's events as they come."""
        which = _which(runs, run)
        opening = f"{which}: {'going on with' if goes_on else 'training in'} {run.folder}"
        ended = TrainingDisplay(self.out, opening, quiet=self.quiet).follow(events)
        if ended and not self.quiet:
            self.out.print(
                f"{which}: trained for {duration(ended.seconds)}, best dev F1 {percent(ended.best_f1)} "
                f"at step {ended.best_step}",
                markup=False,
                soft_wrap=True,
            )

    @contextmanager
    def evaluating(self, runs: Sequence[PlannedRun]) -> Iterator[Callable[[PlannedRun, int, int], None]]:
        """Count the episodes of each run: a bar in a terminal, elsewhere a line."""
        with counting(self.out, quiet=self.quiet) as count:

            def show(run: PlannedRun, done: int, of: int) -> None:
                which = f"{_which(runs, run)}: evaluating"
                if done == 1 and not self.quiet and not self.out.is_terminal:
                    self.out.print(f"{which} on {of} episodes", markup=False, soft_wrap=True)
                count(which, done, of)

            yield show


def _which(runs: Sequence[PlannedRun], run: PlannedRun) -> str:
    return f"Run {runs.index(run) + 1} of {len(runs)}, {run.name} with seed {run.settings.seed}"


def show_comparison(out: Console, comparison: ComparisonReport) -> None:
    """The table, one row for each config."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True, leading=1)
    for title in _titles(comparison):
        table.add_column("\n".join(title))
    for own in comparison.configs:
        best = own is comparison.best
        cells = ["\n".join(lines) for lines in _cells(own)]
        table.add_row(*(Text(cell, style="bold" if best and number < 2 else "") for number, cell in enumerate(cells)))
    out.print(table)
    out.print(remarks(comparison), markup=False)


def markdown(comparison: ComparisonReport) -> str:
    """The same as GitHub's markdown."""
    titles = [" ".join(title) for title in _titles(comparison)]
    lines = [titles, ["---"] * len(titles)]
    for own in comparison.configs:
        name, f1, *rest = [" ".join(part).replace("|", "\\|") for part in _cells(own)]
        lines.append([name, f"**{f1}**" if own is comparison.best else f1, *rest])
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", remarks(comparison)])


def remarks(comparison: ComparisonReport) -> str:
    """What the figures are over."""
    seeds = len(comparison.configs[0].runs)
    first = "the first " if comparison.first else ""
    spread = (
        f"± is the standard deviation over {seeds} seeds"
        if seeds > 1
        else "in brackets 95 % intervals over episodes drawn anew"
    )
    note = f"On {first}{comparison.episodes} {comparison.split} episodes; {spread}. P and R with the O bias, if any."
    return "\n".join([note, *difference_lines(comparison)])


def difference_lines(comparison: ComparisonReport) -> list[str]:
    """Return one line for each config that the best one is compared with."""
    return [
        f"{comparison.best.name} \u2212 {config.name}: {100 * difference.f1:+.2f} "
        f"({100 * difference.interval.low:.2f} to {100 * difference.interval.high:.2f})"
        for config, difference in comparison.differences
    ]


def _titles(comparison: ComparisonReport) -> list[tuple[str, ...]]:
    """The head of each column, in lines."""
    return [
        ("config", "(method)"),
        (METRICS[comparison.metric],),
        ("without", "O bias"),
        ("P / R",),
        ("parameters",),
        ("training", "time"),
        ("best", "step"),
        ("ms per", "sentence"),
        ("ms to", "learn"),
    ]


def _cells(own: ConfigReport) -> list[tuple[str, ...]]:
    """A config's row, each cell in lines; the mean of each figure if there are several seeds."""
    one = own.runs[0]
    return [
        (own.name, f"({own.method})"),
        _scored(own, "f1", one.interval),
        _scored(own, "f1_without_o_bias", one.interval_without_o_bias),
        (f"{_spread(own, 'precision')} /", _spread(own, "recall")),
        (f"{one.parameters:,}",),
        (duration(_mean(own, "training_seconds")),),
        (", ".join(f"{run.subject.step or 0:,}" for run in own.runs),),
        (f"{1000 * _mean(own, 'seconds_per_sentence'):.2f}",),
        (f"{1000 * _mean(own, 'seconds_to_learn'):.2f}",),
    ]


def _scored(own: ConfigReport, name: str, interval: tuple[float, float] | None) -> tuple[str, ...]:
    """F1 with its interval; that of several seeds has a deviation instead."""
    if interval is None:
        return (NONE,)
    if len(own.runs) > 1:
        return (_spread(own, name),)
    return _spread(own, name), f"({percent(interval[0])} to {percent(interval[1])})"


def _spread(own: ConfigReport, name: str) -> str:
    found = own.over_seeds(name)
    if found is None:
        return NONE
    return f"{percent(found[0])} ± {percent(found[1])}" if len(own.runs) > 1 else percent(found[0])


def _mean(own: ConfigReport, name: str) -> float:
    found = own.over_seeds(name)
    return found[0] if found else 0.0
