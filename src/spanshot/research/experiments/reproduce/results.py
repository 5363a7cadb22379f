"""The outcome of an experiment: tables, charts and remarks, independent of how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanshot.evaluation.counts import Counts, add_tables, spread
from spanshot.evaluation.paired import mean_interval
from spanshot.evaluation.report import Interval, Metric, Report
from spanshot.evaluation.runs import RunReport
from spanshot.json_text import JsonValue

NOT_MEASURED = "\u2013"


@dataclass(frozen=True)
class Measured:
    """A measured figure: mean and standard deviation over seeds, and an interval over episodes."""

    mean: float
    deviation: float | None = None
    """None with a single seed."""
    interval: Interval | None = None
    seeds: int = 1

    @classmethod
    def over(cls, values: Sequence[float], interval: Interval | None = None) -> Measured | None:
        """Summarize the values of several seeds; None without any."""
        if not values:
            return None
        mean, deviation = spread(values)
        return cls(mean, deviation if len(values) > 1 else None, interval, len(values))


@dataclass(frozen=True)
class Cell:
    """A measured figure next to the paper's."""

    ours: Measured | None = None
    paper: float | None = None
    paper_deviation: float | None = None
    scale: float = 100.0
    """Factor by which measured figures are multiplied for display; the paper's are shown as printed."""
    decimals: int = 2

    @property
    def text(self) -> str:
        """Our figure, with deviation and interval if there are any."""
        if self.ours is None:
            return NOT_MEASURED
        parts = [self._number(self.ours.mean)]
        if self.ours.deviation is not None:
            parts.append(f"± {self._number(self.ours.deviation)}")
        if self.ours.interval is not None:
            low, high = self.ours.interval
            parts.append(f"({self._number(low)} to {self._number(high)})")
        return " ".join(parts)

    @property
    def paper_text(self) -> str:
        """The paper's figure; empty if it has none."""
        if self.paper is None:
            return ""
        deviation = "" if self.paper_deviation is None else f" ± {self.paper_deviation:.{self.decimals}f}"
        return f"{self.paper:.{self.decimals}f}{deviation}"

    def _number(self, value: float) -> str:
        return f"{self.scale * value:.{self.decimals}f}"

    def to_dict(self) -> dict[str, JsonValue]:
        """Return both figures for JSON, in the units of the table."""
        ours: JsonValue = None
        if self.ours is not None:
            deviation, interval = self.ours.deviation, self.ours.interval
            ours = {
                "mean": self.scale * self.ours.mean,
                "deviation": None if deviation is None else self.scale * deviation,
                "interval": None if interval is None else [self.scale * end for end in interval],
                "seeds": self.ours.seeds,
            }
        return {"ours": ours, "paper": self.paper, "paper_deviation": self.paper_deviation}


@dataclass(frozen=True)
class ResultTable:
    """A table: one row per method, one cell per column."""

    title: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Cell | str, ...]]
    note: str = ""
    head: str = "method"
    """Heading of the first column."""
    is_timed: bool = False
    """Whether the figures are times, which another run does not repeat exactly."""

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the table for JSON."""
        rows: dict[str, JsonValue] = {
            name: {
                column: cell if isinstance(cell, str) else cell.to_dict()
                for column, cell in zip(self.columns, cells, strict=True)
            }
            for name, cells in self.rows.items()
        }
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": rows,
            "note": self.note,
            "timed": self.is_timed,
        }


@dataclass(frozen=True)
class Curve:
    """A line of a chart, or a group of bars."""

    name: str
    means: tuple[float, ...]
    deviations: tuple[float, ...] = ()
    """Half the height of the error band at each point; empty: no band."""

    @classmethod
    def of_f1(cls, name: str, figures: Sequence[Measured]) -> Curve:
        """Return F1 scores in percent, with half the height of their intervals (0 where there is none)."""
        halves = (50 * (ends[1] - ends[0]) if (ends := figure.interval) else 0.0 for figure in figures)
        return cls(name, tuple(100 * figure.mean for figure in figures), tuple(halves))


@dataclass(frozen=True)
class Chart:
    """A plot: curves over numbers, or groups of bars over names."""

    name: str
    """Name of the file, without suffix."""
    title: str
    x_label: str
    y_label: str
    xs: tuple[float, ...] | tuple[str, ...]
    curves: tuple[Curve, ...]
    note: str = ""

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the plotted figures for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "x": list(self.xs),
            "curves": {
                curve.name: {"means": list(curve.means), "deviations": list(curve.deviations)} for curve in self.curves
            },
        }


@dataclass(frozen=True)
class Result:
    """The results of an experiment so far."""

    name: str
    title: str
    tables: tuple[ResultTable, ...]
    charts: tuple[Chart, ...] = ()
    remarks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    """How it was run, one sentence each: steps, seeds, episodes."""

    def to_dict(self) -> dict[str, JsonValue]:
        """Return all figures for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "tables": [table.to_dict() for table in self.tables],
            "charts": [chart.to_dict() for chart in self.charts],
            "remarks": list(self.remarks),
            "settings": list(self.settings),
        }


def f1_of(reports: Sequence[RunReport]) -> Measured | None:
    """Return F1 over the seeds of one method on the same episodes; None without any."""
    if not reports:
        return None
    metric = reports[0].metric
    interval = mean_interval([run.report for run in reports], metric)
    return Measured.over([run.f1 for run in reports], interval)


def f1_cell(reports: Sequence[RunReport], paper: float | None = None, paper_deviation: float | None = None) -> Cell:
    """Return the cell for F1 over the seeds of one method."""
    return Cell(f1_of(reports), paper, paper_deviation)


def joined(reports: Sequence[Report]) -> Report:
    """Join reports on different episodes, such as those of several domains."""
    episodes: list[Counts] = [counts for report in reports for counts in report.episodes]
    return Report(tuple(episodes), add_tables(report.labels for report in reports))


def mean_of(reports: Sequence[Report], metric: Metric) -> Measured | None:
    """Return the mean F1 of reports, one per seed, with an interval."""
    if not reports:
        return None
    return Measured.over([report.f1(metric) for report in reports], mean_interval(reports, metric))
