"""Find labels that a tagger does not learn well from the examples, and say what to add."""

from __future__ import annotations

from collections.abc import Iterator

from spanshot.evaluation.counts import Counts
from spanshot.evaluation.report import Report
from spanshot.examples.lint import Finding, Kind

WEAK_F1 = 0.5


def weak_labels(report: Report) -> list[Finding]:
    """Return a finding for each label with a low F1: its confusions, and the examples to add."""
    counted = ((label, counts) for label, counts in report.labels.items() if counts.tp + counts.fn)
    return [Finding(Kind.WEAK, _message(label, counts, report)) for label, counts in counted if counts.f1 < WEAK_F1]


def _message(label: str, counts: Counts, report: Report) -> str:
    spans = counts.tp + counts.fn
    summary = f"{label!r} is not learned well: F1 {100 * counts.f1:.0f}, {counts.tp} of {spans} spans found"
    return "; ".join([summary, *_advice(label, counts, report)])


def _advice(label: str, counts: Counts, report: Report) -> Iterator[str]:
    confusions = {predicted: count for (gold, predicted), count in report.confusions.items() if gold == label}
    missed = counts.fn - sum(confusions.values())
    for other, count in sorted(confusions.items(), key=lambda item: (-item[1], item[0]))[:2]:
        yield f"{count} found as {other!r}: add examples with both labels in one sentence, or merge the labels"
    if missed > 0:
        yield f"{missed} missed: add examples of {label!r} with other words and in other contexts"
    if counts.fp_span > counts.tp:
        yield f"{counts.fp_span} wrong ones: add sentences with similar words that are not {label!r}, left unmarked"
