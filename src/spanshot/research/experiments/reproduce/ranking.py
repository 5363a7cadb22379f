"""Compare the ranking of methods with the paper's, and methods with one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from spanshot.evaluation.paired import difference
from spanshot.evaluation.report import Metric, Report


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


def differs(remark: str) -> bool:
    """Whether a remark of `ranking_remark` reports another ranking."""
    return "the ranking differs" in remark


def difference_remarks(where: str, name: str, reports: Mapping[str, Sequence[Report]], metric: Metric) -> list[str]:
    """Compare one method with each of the others by paired bootstrap, on the seeds that both have.

    The reports of a method are one per seed, on the same episodes.
    """
    remarks = []
    for other, theirs in reports.items():
        seeds = min(len(theirs), len(reports.get(name, ())))
        if other == name or not seeds:
            continue
        gap = difference(reports[name][:seeds], theirs[:seeds], metric)
        low, high = 100 * gap.interval.low, 100 * gap.interval.high
        clear = "" if gap.is_clear else ", not a clear difference"
        remarks.append(f"{where}: {name} \u2212 {other}: {100 * gap.f1:+.2f} ({low:.2f} to {high:.2f}){clear}.")
    return remarks
