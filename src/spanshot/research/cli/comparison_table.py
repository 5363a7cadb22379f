"""The table of a comparison, for a terminal and as Markdown."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spanshot.cli.console import duration, percent, visible
from spanshot.evaluation.report import Interval, Metric
from spanshot.evaluation.runs import ComparisonReport, ConfigReport

METRIC_TITLES: dict[Metric, str] = {"micro_f1": "micro F1", "mean_f1": "mean F1"}
NONE = "none"
Lines = tuple[str, ...]
"""The text of a cell, line by line."""


def show_comparison(out: Console, report: ComparisonReport) -> None:
    """Print the table, one row per config; the best config is bold."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True, leading=1)
    for title in _titles(report):
        table.add_column("\n".join(title))
    for config in report.configs:
        best = config is report.best
        cells = ["\n".join(lines) for lines in _cells(config)]
        table.add_row(*(Text(visible(cell), style="bold" if best and at < 2 else "") for at, cell in enumerate(cells)))
    out.print(table)
    out.print(remarks(report))


def to_markdown(report: ComparisonReport) -> str:
    """Return the table as GitHub's Markdown."""
    titles = [" ".join(title) for title in _titles(report)]
    rows = [titles, ["---"] * len(titles)]
    for config in report.configs:
        name, f1, *other_cells = [" ".join(lines).replace("|", "\\|") for lines in _cells(config)]
        rows.append([name, f"**{f1}**" if config is report.best else f1, *other_cells])
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), "", remarks(report)])


def remarks(report: ComparisonReport) -> str:
    """Return a note on the episodes and seeds, and on the lead of the best config."""
    seeds = len(report.configs[0].runs)
    spread = (
        f"± is the standard deviation over {seeds} seeds"
        if seeds > 1
        else "in brackets 95 % bootstrap intervals over the episodes"
    )
    first = "the first " if report.first else ""
    line = f"On {first}{report.episodes} {report.split} episodes; {spread}. P and R with the O bias, if any."
    return "\n".join([line, *difference_lines(report)])


def difference_lines(report: ComparisonReport) -> list[str]:
    """Return one line for each config that the best one is compared with."""
    return [
        f"{report.best.name} \u2212 {config.name}: {100 * difference.f1:+.2f} "
        f"({100 * difference.interval.low:.2f} to {100 * difference.interval.high:.2f})"
        for config, difference in report.differences
    ]


def _titles(report: ComparisonReport) -> list[Lines]:
    return [
        ("config", "(method)"),
        (METRIC_TITLES[report.metric],),
        ("without", "O bias"),
        ("P / R",),
        ("parameters",),
        ("training", "time"),
        ("best", "step"),
        ("ms per", "sentence"),
        ("ms to", "learn"),
    ]


def _cells(config: ConfigReport) -> list[Lines]:
    """Return the row of a config, with the mean of each figure if there are several seeds."""
    run = config.runs[0]
    return [
        (config.name, f"({config.method})"),
        _score(config, "f1", run.interval),
        _score(config, "f1_without_o_bias", run.interval_without_o_bias),
        (f"{_spread(config, 'precision')} /", _spread(config, "recall")),
        (f"{run.parameters:,}",),
        (duration(_mean(config, "training_seconds")),),
        (", ".join(f"{run.subject.step or 0:,}" for run in config.runs),),
        (f"{1000 * _mean(config, 'seconds_per_sentence'):.2f}",),
        (f"{1000 * _mean(config, 'seconds_to_learn'):.2f}",),
    ]


def _score(config: ConfigReport, figure: str, interval: Interval | None) -> Lines:
    """Return F1 with its interval, or with its deviation if there are several seeds."""
    if interval is None:
        return (NONE,)
    if len(config.runs) > 1:
        return (_spread(config, figure),)
    return _spread(config, figure), f"({percent(interval.low)} to {percent(interval.high)})"


def _spread(config: ConfigReport, figure: str) -> str:
    over = config.over_seeds(figure)
    if over is None:
        return NONE
    return f"{percent(over.mean)} ± {percent(over.deviation)}" if len(config.runs) > 1 else percent(over.mean)


def _mean(config: ConfigReport, figure: str) -> float:
    over = config.over_seeds(figure)
    return over.mean if over else 0.0
