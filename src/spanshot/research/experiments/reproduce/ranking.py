"""Compare the ranking of methods with the paper's, and methods with one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from spanshot.evaluation.paired import Difference, difference
from spanshot.evaluation.report import Metric, Report
from spanshot.research.experiments.reproduce.results import NOT_MEASURED, Cell, ResultTable


def ranking_remark(where: str, ours: Mapping[str, float | None], paper: Mapping[str, float | None]) -> str:
    """Compare the ranking of the methods that both have; empty if there are fewer than two.

    >>> ranking_remark("1-shot", {"ESD": 0.61, "ProtoBERT": 0.63}, {"ESD": 70.4, "ProtoBERT": 55.8})
    '1-shot: the ranking differs from the paper. Here: ProtoBERT, ESD. Paper: ESD, ProtoBERT.'
    """
    first = {name: value for name, value in ours.items() if value is not None and paper.get(name) is not None}
    if len(first) < 2:
        return ""
    second = {name: value for name in first if (value := paper[name]) is not None}
    our_order = sorted(first, key=lambda name: -first[name])
    paper_order = sorted(second, key=lambda name: -second[name])
    agreements = [(first[a] - first[b]) * (second[a] - second[b]) for a, b in combinations(first, 2)]
    if min(agreements) >= 0:
        ties = " apart from ties" if min(agreements) == 0 else ""
        return f"{where}: the same ranking as in the paper{ties}: {', '.join(our_order)}."
    return (
        f"{where}: the ranking differs from the paper. Here: {', '.join(our_order)}. Paper: {', '.join(paper_order)}."
    )


def column_rankings(where: str, columns: Sequence[str], rows: Mapping[str, Sequence[Cell | str]]) -> list[str]:
    """Return `ranking_remark` of all columns of a table; columns with the same outcome share a remark."""
    columns_of: dict[str, list[str]] = {}
    for number, column in enumerate(columns):
        cells = {name: cell for name, row in rows.items() if isinstance(cell := row[number], Cell)}
        ours = {name: cell.ours.mean if cell.ours else None for name, cell in cells.items()}
        outcome = ranking_remark("", ours, {name: cell.paper for name, cell in cells.items()})
        if outcome:
            columns_of.setdefault(outcome, []).append(column)
    return [f"{where}, {', '.join(names)}{outcome}" for outcome, names in columns_of.items()]


def differs(remark: str) -> bool:
    """Whether a remark of `ranking_remark` reports another ranking."""
    return "the ranking differs" in remark


def difference_remarks(where: str, name: str, reports: Mapping[str, Sequence[Report]], metric: Metric) -> list[str]:
    """Compare one method with each of the others by paired bootstrap, on the seeds that both have.

    The reports of a method are one per seed, on the same episodes.
    """
    remarks = []
    for other in reports:
        gap = _difference(name, other, reports, metric)
        if gap is not None:
            clear = "" if gap.is_clear else ", not a clear difference"
            remarks.append(f"{where}: {name} \u2212 {other}: {_text(gap)}{clear}.")
    return remarks


def difference_table(
    title: str, name: str, columns: Mapping[str, Mapping[str, Sequence[Report]]], metric: Metric
) -> ResultTable:
    """Return the same as a table, with a column for each set of episodes."""
    others = [other for other in next(iter(columns.values())) if other != name]
    rows: dict[str, tuple[Cell | str, ...]] = {}
    for other in others:
        gaps = [_difference(name, other, reports, metric) for reports in columns.values()]
        rows[f"{name} \u2212 {other}"] = tuple(NOT_MEASURED if gap is None else _text(gap) for gap in gaps)
    note = "A difference is clear if its interval, by paired bootstrap over episodes, excludes 0."
    return ResultTable(title, tuple(columns), rows, note, head="difference")


def _difference(name: str, other: str, reports: Mapping[str, Sequence[Report]], metric: Metric) -> Difference | None:
    theirs = reports[other]
    seeds = min(len(theirs), len(reports.get(name, ())))
    if other == name or not seeds:
        return None
    return difference(reports[name][:seeds], theirs[:seeds], metric)


def _text(gap: Difference) -> str:
    return f"{100 * gap.f1:+.2f} ({100 * gap.interval.low:.2f} to {100 * gap.interval.high:.2f})"
