"""What is said of a set of examples: by looking at it, and by leaving parts of it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from spanshot.cli.display import percent
from spanshot.cli.tagging import examples_of, model_of
from spanshot.errors import EpisodeError
from spanshot.examples.lint import Finding, findings
from spanshot.types import Sentence

if TYPE_CHECKING:
    from spanshot.examples.leave_one_out import LeaveOneOut

Progress = Callable[[Path, int, int], None]


@dataclass(frozen=True)
class Check:
    """All that is known of a set of examples."""

    sentences: tuple[Sentence, ...]
    dropped: tuple[str, ...]
    findings: tuple[Finding, ...]
    left_out: LeaveOneOut | None
    """None where it was not asked for, or there are too few examples."""

    @property
    def labels(self) -> dict[str, tuple[int, int]]:
        """Spans of each label, and the examples that have it."""
        found: dict[str, tuple[int, int]] = {}
        for sentence in self.sentences:
            for label in sorted({span.label for span in sentence.spans}):
                spans, examples = found.get(label, (0, 0))
                found[label] = spans + sum(span.label == label for span in sentence.spans), examples + 1
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "examples": len(self.sentences),
            "labels": {label: {"spans": s, "examples": e} for label, (s, e) in self.labels.items()},
            "dropped": list(self.dropped),
            "findings": [
                {"kind": f.kind.value, "message": f.message, "examples": list(f.examples)} for f in self.findings
            ],
            "leave_one_out": leave_one_out_document(self.left_out) if self.left_out else None,
        }


def check(files: Sequence[Path], kind: str | None, model: Path | None, look_only: bool, progress: Progress) -> Check:
    """Look at the examples and, unless told not to, leave parts of them out."""
    read = examples_of(files, kind)
    sentences = tuple(sentence for own in read for sentence in own.sentences)
    dropped = tuple(line for own in read for line in own.dropped.summary().splitlines())
    left_out = None
    if not look_only:
        try:
            left_out = _left_out(sentences, files[0], model, progress)
        except EpisodeError:
            left_out = None  # too few examples to leave any out; the findings say what is missing
    return Check(sentences, dropped, tuple(findings(sentences)), left_out)


def evaluate_examples(files: Sequence[Path], kind: str | None, model: Path | None, progress: Progress) -> LeaveOneOut:
    """Leave parts of the examples out."""
    sentences = tuple(sentence for own in examples_of(files, kind) for sentence in own.sentences)
    return _left_out(sentences, files[0], model, progress)


def _left_out(sentences: Sequence[Sentence], name: Path, model: Path | None, progress: Progress) -> LeaveOneOut:
    from spanshot.examples.leave_one_out import leave_one_out

    return leave_one_out(model_of(model).method, sentences, lambda done, of: progress(name, done, of))


def leave_one_out_document(found: LeaveOneOut) -> dict[str, Any]:
    """One JSON document."""
    return {
        "total": found.total.to_dict(),
        "labels": {label: counts.to_dict() for label, counts in found.by_label.items()},
        "confusions": [
            {"marked": marked, "found": other, "count": count}
            for (marked, other), count in found.confusions.most_common()
        ],
        "single_example": list(found.lonely),
    }


def show_check(out: Console, report: Check) -> None:
    """For people."""
    table = Table(title=f"{len(report.sentences)} examples", title_justify="left", box=None, pad_edge=False)
    for column in ("label", "spans", "examples"):
        table.add_column(column, justify="left" if column == "label" else "right")
    for label, (spans, examples) in report.labels.items():
        table.add_row(label, str(spans), str(examples))
    out.print(table)
    if report.dropped:
        out.print("\nCould not be used", style="bold")
    for line in report.dropped:
        out.print(f"  {line}", markup=False, soft_wrap=True)
    if report.findings:
        out.print("\nWorth a look", style="bold")
    for finding in report.findings:
        where = f" (example {', '.join(map(str, finding.examples))})" if finding.examples else ""
        out.print(f"  {finding.message}{where}", markup=False, soft_wrap=True)
    if not report.findings and not report.dropped:
        out.print("\nNothing wrong to be seen.")
    if report.left_out:
        out.print()
        show_leave_one_out(out, report.left_out)


def show_leave_one_out(out: Console, found: LeaveOneOut) -> None:
    """For people."""
    title = "Each example tagged by what the others teach"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("label")
    for column in ("F1", "P", "R", "right", "missed", "wrong"):
        table.add_column(column, justify="right")
    rows = [*found.by_label.items(), ("all", found.total)]
    for label, counts in rows:
        style = "bold" if counts is found.total else None
        shown = (percent(counts.f1), percent(counts.precision), percent(counts.recall))
        table.add_row(label, *shown, str(counts.tp), str(counts.fn), str(counts.fp), style=style)
    out.print(table)
    if found.confusions:
        told = (f"{marked} as {other} ({count})" for (marked, other), count in found.confusions.most_common(5))
        out.print(f"Taken for another: {', '.join(told)}", markup=False, soft_wrap=True)
    if found.lonely:
        out.print(f"Not measured, for want of a second example: {', '.join(found.lonely)}", markup=False)
