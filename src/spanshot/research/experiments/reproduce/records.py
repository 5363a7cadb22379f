"""Records of finished runs in one file, without their weights: tables can be checked, and work continues elsewhere.

A line per run has its settings, its outcome and its measurements. Paths are stored relative to the folders of the
workspace, so that the file serves on any machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from spanshot.errors import DataError
from spanshot.files import write_text
from spanshot.formats.files import read_text
from spanshot.json_text import Fields, JsonObject, JsonValue, parse_json, to_json
from spanshot.research.experiments.reproduce.jobs import Job, measured_names, measurement_file
from spanshot.research.experiments.reproduce.workspace import Workspace
from spanshot.research.training.folder import RESULT, is_finished, is_same_training, write_settings

DATA, OUT = "${data}", "${out}"
"""Stand for the folders of a workspace in records."""


class Records:
    """The records in a file, by name of the run."""

    def __init__(self, path: Path, workspace: Workspace) -> None:
        self.path = path
        self._folders = ((DATA, str(workspace.data)), (OUT, str(workspace.out)))
        self._records: dict[str, JsonObject] = {}
        if path.exists():
            for number, line in enumerate(read_text(path).splitlines(), start=1):
                try:
                    fields = Fields.of(parse_json(line))
                    self._records[fields.text("run")] = fields.record
                except DataError as problem:
                    raise DataError(f"{path}:{number}: {problem}") from None

    def restore(self, jobs: Iterable[Job]) -> None:
        """Write the results of recorded runs to the folders of jobs that have none.

        A record with other settings is ignored.
        """
        for job in jobs:
            if not job.folder.exists():
                self._restore(job)

    def _restore(self, job: Job) -> None:
        if (record := self._records.get(job.name)) is None:
            return
        fields = Fields.of(self._absolute(record))
        if job.settings is not None:
            if not is_same_training(fields.object("settings").record, job.settings):
                return
            write_settings(job.settings, job.folder)
            write_text(job.folder / RESULT, [to_json(fields.value("result"), indent=2), "\n"])
        job.folder.mkdir(parents=True, exist_ok=True)
        measurements = fields.object("measurements")
        for name in measurements.record:
            text = to_json(measurements.value(name), indent=1)
            write_text(measurement_file(job.folder, name), [text, "\n"])

    def save(self, jobs: Sequence[Job]) -> None:
        """Add the runs among ``jobs`` that are trained and measured, and write the file if that changes it."""
        before = dict(self._records)
        for job in jobs:
            trained = job.settings is None or is_finished(job.folder)
            if trained and measured_names(job.folder):
                self._records[job.name] = self._record(job)
        if self._records != before:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lines = [to_json(self._records[name]) + "\n" for name in sorted(self._records)]
            write_text(self.path, lines)

    def _record(self, job: Job) -> JsonObject:
        files = {name: measurement_file(job.folder, name) for name in measured_names(job.folder)}
        record: dict[str, JsonValue] = {
            "run": job.name,
            "settings": self._settings(job),
            "result": None if job.settings is None else parse_json(read_text(job.folder / RESULT)),
            "measurements": {name: parse_json(read_text(path)) for name, path in files.items()},
        }
        return Fields.of(self._relative(record)).record

    def _settings(self, job: Job) -> JsonValue:
        if job.settings is None:
            return None
        return self._relative(parse_json(to_json(job.settings.to_table())))  # as read back: tuples are lists

    def _relative(self, value: JsonValue) -> JsonValue:
        return _replaced(value, [(folder, sign) for sign, folder in self._folders])

    def _absolute(self, value: JsonValue) -> JsonValue:
        return _replaced(value, self._folders)


def _replaced(value: JsonValue, prefixes: Sequence[tuple[str, str]]) -> JsonValue:
    """Return the value with the first prefix that fits replaced in each string."""
    if isinstance(value, str):
        for old, new in prefixes:
            if value == old or value.startswith(f"{old}/"):
                return new + value[len(old) :]
        return value
    if isinstance(value, dict):
        return {key: _replaced(item, prefixes) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, prefixes) for item in value]
    return value
