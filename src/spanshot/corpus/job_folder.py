"""The output folder of a corpus job: its description, its manifest, and the lock that one job at a time holds.

job.json         tagger, settings and input files, with digests; written once
manifest.jsonl   one line for each part that is done, in the order of completion
tagged/          the output files
failed/          the rows that could not be tagged, with the reason
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from spanshot.corpus.part import FAILED, TAGGED, PartRecord
from spanshot.corpus.plan import Part
from spanshot.corpus.scan import InputFile
from spanshot.corpus.settings import CorpusSettings
from spanshot.errors import ConfigError, DataError
from spanshot.files import is_temporary, remove_stale, write_text
from spanshot.json_text import Fields, JsonValue, parse_json, to_json
from spanshot.locks import locked

JOB, MANIFEST, LOCK = "job.json", "manifest.jsonl", ".spanshot-lock"
FORMAT = 1


@dataclass(frozen=True)
class JobDescription:
    """All that the output of a job depends on."""

    tagger: str
    """The digest of the tagger."""
    settings: CorpusSettings
    inputs: Sequence[InputFile]

    def json(self) -> dict[str, JsonValue]:
        """Return the description as JSON."""
        inputs: list[JsonValue] = [asdict(file) for file in self.inputs]
        return {"format": FORMAT, "tagger": self.tagger, "settings": asdict(self.settings), "inputs": inputs}

    @classmethod
    def parse(cls, text: str) -> JobDescription:
        """Read a description."""
        fields = Fields.of(parse_json(text))
        if fields.integer("format") != FORMAT:
            raise DataError(f"written by another version of spanshot (format {fields.integer('format')})")
        stored = fields.object("settings")
        settings = CorpusSettings(
            stored.text("column"),
            stored.text("entities"),
            stored.text("to"),
            stored.integer("rows"),
            stored.integer("max_characters"),
        )
        inputs = []
        for item in map(Fields.of, fields.list("inputs")):
            inputs.append(InputFile(item.text("name"), item.integer("rows"), item.text("sha256"), item.text("stamp")))
        return cls(fields.text("tagger"), settings, inputs)


class JobFolder:
    """An output folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Refuse a folder that contains anything but a job."""
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path}: is a file; --output names a folder")
        if not self.path.exists() or (self.path / JOB).is_file():
            return
        others = [entry.name for entry in self.path.iterdir() if entry.name != LOCK and not is_temporary(entry.name)]
        if others:
            raise ConfigError(
                f"{self.path}: contains other files ({', '.join(sorted(others)[:3])}) and no job; name a new or empty "
                "folder"
            )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Create the folder and hold its lock. Only one job at a time writes to a folder."""
        self.check()
        with contextlib.ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.path / LOCK, timeout=0))
            except TimeoutError:
                raise ConfigError(
                    f"{self.path}: another job is writing to this folder; wait, or name another"
                ) from None
            except OSError as error:
                raise DataError.at(self.path, None, f"cannot be written: {error.strerror or error}") from error
            self.check()
            self._clean()
            yield
            self._clean()

    def _clean(self) -> None:
        """Remove temporary files that killed workers have left."""
        for folder in (self.path, self.path / TAGGED, self.path / FAILED):
            remove_stale(folder)

    def description(self) -> JobDescription | None:
        """Read the description of the job in this folder; None if there is none."""
        path = self.path / JOB
        try:
            return JobDescription.parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (DataError, ConfigError, UnicodeDecodeError) as error:
            raise DataError.at(path, None, f"cannot be read: {error}") from None

    def begin(self, description: JobDescription) -> None:
        """Write the description of a new job."""
        write_text(self.path / JOB, [to_json(description.json(), indent=1), "\n"])

    def make_folders(self) -> None:
        """Create the folders of the output."""
        for name in (TAGGED, FAILED):
            (self.path / name).mkdir(exist_ok=True)

    def finished(self, parts: Sequence[Part]) -> dict[int, PartRecord]:
        """Return the parts that are done and whose output is still there."""
        records: dict[int, PartRecord] = {}
        path = self.path / MANIFEST
        try:
            lines = path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return {}
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):  # the job was killed while it wrote this line
                break
            try:
                record = PartRecord.of(Fields.of(parse_json(line.decode("utf-8"))))
            except (DataError, UnicodeDecodeError) as error:
                raise DataError.at(path, number, f"damaged: {error}; remove the line to tag its part again") from None
            if record.part < len(parts) and self._is_there(record, parts[record.part]):
                records[record.part] = record
        return records

    def _is_there(self, record: PartRecord, part: Part) -> bool:
        if (record.file, record.start, record.end) != (part.file, part.start, part.end):
            return False
        if record.failed and not (self.path / FAILED / f"{part.name}.jsonl").is_file():
            return False
        try:
            return (self.path / record.output).stat().st_size == record.size
        except OSError:
            return False


class ManifestWriter:
    """Adds lines to the manifest. A line that a killed job has left unfinished is removed first."""

    def __init__(self, folder: JobFolder, description: JobDescription) -> None:
        self._tagger = description.tagger
        self._digests = {file.name: file.sha256 for file in description.inputs}
        self._file = (folder.path / MANIFEST).open("a+b")
        self._file.seek(0)
        whole = sum(len(line) for line in self._file if line.endswith(b"\n"))
        if self._file.tell() > whole:
            self._file.truncate(whole)

    def add(self, record: PartRecord) -> None:
        """Write a line to the disk."""
        digests: Mapping[str, JsonValue] = {"input_sha256": self._digests[record.file], "tagger_sha256": self._tagger}
        self._file.write(f"{to_json({**record.json(), **digests})}\n".encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
