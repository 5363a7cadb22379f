"""Measurements of F1: on one set of episodes, or on several with one O bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spanshot.evaluation.runs import RunReport
from spanshot.json_text import Fields, JsonObject, JsonValue
from spanshot.research.experiments.measure import measure
from spanshot.research.experiments.reproduce.jobs import Count, read_measurement


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a run on a split of its corpus, or on a file of episodes."""

    name: str
    split: str = "test"
    on: Path | None = None
    tune_on: Path | None = None
    """File of dev episodes to choose the O bias on (None: the one chosen in training)."""
    assignments: tuple[str, ...] = ()
    """Settings of the method to change, such as method.tau=0."""
    first: int = 0
    """Use only the first N episodes (0: all)."""

    def describe(self) -> JsonObject:
        """Return all fields."""
        return {
            "split": self.split,
            "on": None if self.on is None else str(self.on),
            "tune_on": None if self.tune_on is None else str(self.tune_on),
            "assignments": list(self.assignments),
            "first": self.first,
        }

    def measure(self, folder: Path, count: Count) -> JsonObject:
        """Evaluate, and return the report with the counts of each episode."""
        report = measure(folder, self.split, self.assignments, self.first, count, self.on, tune_on=self.tune_on)
        return report.to_dict(counts_of_episodes=True)

    def read(self, folder: Path) -> RunReport | None:
        """Return the recorded report, if there is one."""
        record = read_measurement(folder, self)
        return None if record is None else RunReport.from_dict(record)


@dataclass(frozen=True)
class EvaluationSeries:
    """The evaluation of a run on several files of episodes, with the O bias tuned once."""

    name: str
    files: tuple[tuple[str, Path], ...]
    """Name and path of each file."""
    tune_on: Path
    assignments: tuple[str, ...] = ()
    first: int = 0

    def describe(self) -> JsonObject:
        """Return all fields."""
        return {
            "files": {name: str(path) for name, path in self.files},
            "tune_on": str(self.tune_on),
            "assignments": list(self.assignments),
            "first": self.first,
        }

    def measure(self, folder: Path, count: Count) -> JsonObject:
        """Evaluate on each file, and return the reports by name."""
        o_bias: float | None = None
        outcome: dict[str, JsonValue] = {}
        for number, (name, path) in enumerate(self.files):

            def watch(done: int, total: int, number: int = number) -> None:
                count(number * total + done, len(self.files) * total)

            report = measure(
                folder, "test", self.assignments, self.first, watch, path, tune_on=self.tune_on, o_bias=o_bias
            )
            o_bias = report.o_bias
            outcome[name] = report.to_dict(counts_of_episodes=True)
        return outcome

    def read(self, folder: Path) -> dict[str, RunReport] | None:
        """Return the recorded reports by name, if there are any."""
        record = read_measurement(folder, self)
        if record is None:
            return None
        fields = Fields.of(record)
        return {name: RunReport.from_dict(fields.value(name)) for name, _ in self.files}


def reports_of(items: Sequence[tuple[Path, Evaluation]]) -> list[RunReport]:
    """Return the reports that are recorded, one per seed; those of unfinished runs are left out."""
    return [report for folder, item in items if (report := item.read(folder)) is not None]
