"""The work on one part: read its rows, tag them, and write one output file and, if rows failed, one file of those.

Both files are replaced in one step, and their content depends only on inputs, tagger and settings. So a part can be
done twice, even at the same time, without harm.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from spanshot.allocator import give_back_memory
from spanshot.corpus.plan import Part
from spanshot.corpus.rows import Block, JsonRows, RowReader, is_unicode
from spanshot.corpus.settings import BLOCK_CHARACTERS, CorpusSettings
from spanshot.files import replacing
from spanshot.formats.json_values import JsonObject as Record
from spanshot.formats.schema import to_records
from spanshot.formats.table_files import ArrowRows, Rows, write_table_file
from spanshot.json_text import Fields, JsonObject, JsonValue, to_json

if TYPE_CHECKING:
    from spanshot.tagger import Tagger

Records: TypeAlias = "list[Record]"
"""The entities of a text."""
TAGGED, FAILED = "tagged", "failed"
"""Folders of the output files and of the rows that failed."""


@dataclass(frozen=True)
class PartRecord:
    """A finished part, as the manifest records it."""

    part: int
    file: str
    """The input file."""
    start: int
    end: int
    rows: int
    """Rows in the output file."""
    entities: int
    failed: int
    """Rows in the file of failed rows."""
    output: str
    """The output file."""
    size: int
    sha256: str
    seconds: float
    cpu_seconds: float

    def json(self) -> dict[str, JsonValue]:
        """Return the record as JSON."""
        return asdict(self)

    @classmethod
    def of(cls, fields: Fields) -> PartRecord:
        """Read a record."""
        part, start, end = (fields.integer(name) for name in ("part", "start", "end"))
        rows, entities, failed, size = (fields.integer(name) for name in ("rows", "entities", "failed", "size"))
        file, output, digest = (fields.text(name) for name in ("file", "output", "sha256"))
        seconds, cpu_seconds = fields.number("seconds"), fields.number("cpu_seconds")
        return cls(part, file, start, end, rows, entities, failed, output, size, digest, seconds, cpu_seconds)


@dataclass
class _Tally:
    """The counts of a part, and its failed rows: their numbers and lines of JSON."""

    part: Part
    rows: int = 0
    entities: int = 0
    failed: list[tuple[int, str]] = field(default_factory=list)

    def add(self, records: Records) -> None:
        """Count a row that was tagged."""
        self.rows += 1
        self.entities += len(records)

    def fail(self, row: int, problem: str, content: JsonObject) -> None:
        """Add a failed row; leave out its content if that cannot be written."""
        record: dict[str, JsonValue] = {"file": self.part.file, "row": row, "problem": problem}
        try:
            line = to_json({**record, "content": content})
        except (RecursionError, ValueError):
            line = to_json(record)
        self.failed.append((row, f"{line}\n"))


class PartTagger:
    """Tags parts, one after the other. It keeps the tagger and the open input file."""

    def __init__(self, tagger: Tagger, settings: CorpusSettings, folder: Path) -> None:
        self._tagger = tagger
        self._settings = settings
        self._folder = folder
        self._to = settings.to
        self._reader = RowReader()

    def __call__(self, part: Part) -> PartRecord:
        """Tag a part and write its files."""
        began, cpu_began = time.monotonic(), time.process_time()
        output = self._folder / TAGGED / f"{part.name}.{self._to}"
        tally = _Tally(part)
        with replacing(output, "wb", clean=False) as file:
            if self._to == "jsonl":
                file.writelines(line.encode() for line in self._lines(part, tally))
            else:
                write_table_file(output, file, self._tables(part, tally))
        if tally.failed:
            with replacing(self._folder / FAILED / f"{part.name}.jsonl", clean=False) as lines:
                lines.writelines(line for _, line in sorted(tally.failed))
        give_back_memory()
        content = output.read_bytes()
        return PartRecord(
            part=part.number,
            file=part.file,
            start=part.start,
            end=part.end,
            rows=tally.rows,
            entities=tally.entities,
            failed=len(tally.failed),
            output=f"{TAGGED}/{output.name}",
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            seconds=round(time.monotonic() - began, 3),
            cpu_seconds=round(time.process_time() - cpu_began, 3),
        )

    def close(self) -> None:
        """Close the open input file."""
        self._reader.close()

    def _lines(self, part: Part, tally: _Tally) -> Iterator[str]:
        """Yield the rows that were tagged, as lines of JSON."""
        for block, outcomes in self._blocks(part, tally):
            for number, record, outcome in zip(block.numbers, block.rows.records(), outcomes, strict=True):
                if isinstance(outcome, str):
                    tally.fail(number, outcome, record)
                    continue
                try:
                    line = to_json({**record, self._settings.entities: outcome})
                except (RecursionError, ValueError):
                    tally.fail(number, "its other fields are nested too deeply", record)
                else:
                    tally.add(outcome)
                    yield f"{line}\n"

    def _tables(self, part: Part, tally: _Tally) -> Iterator[Rows]:
        """Yield the rows that were tagged, with the column of entities. The first table may be empty."""
        for block, outcomes in self._blocks(part, tally):
            assert not isinstance(block.rows, JsonRows)
            good: list[Records] = []
            places: list[int] = []
            for place, outcome in enumerate(outcomes):
                if isinstance(outcome, str):
                    tally.fail(block.numbers[place], outcome, block.rows.take([place]).records()[0])
                else:
                    tally.add(outcome)
                    good.append(outcome)
                    places.append(place)
            rows = block.rows if len(places) == len(block.rows) else block.rows.take(places)
            typed = ArrowRows(rows.arrow()) if self._to == "parquet" else rows
            yield typed.with_entities(self._settings.entities, good, because=False)

    def _blocks(self, part: Part, tally: _Tally) -> Iterator[tuple[Block, list[Records | str]]]:
        """Yield the rows, and for each the records of its entities or the reason why it failed."""
        for block in self._reader.read(part.file, part.start, part.end, part.stamp):
            for bad in block.bad:
                tally.fail(bad.row, bad.problem, bad.content)
            yield block, self._outcomes(block)

    def _outcomes(self, block: Block) -> list[Records | str]:
        values = block.rows.column(self._settings.column)
        outcomes: list[Records | str] = [self._problem(value) for value in values]
        if isinstance(block.rows, JsonRows):
            for place, record in enumerate(block.rows.rows):
                if self._settings.entities in record:
                    outcomes[place] = f"there is already a field {self._settings.entities!r}"
        texts = [(place, value) for place, value in enumerate(values) if not outcomes[place] and isinstance(value, str)]
        for group in _groups(texts):
            for (place, _), outcome in zip(group, self._tag([text for _, text in group]), strict=True):
                outcomes[place] = outcome
        return outcomes

    def _problem(self, value: object) -> str:
        """Return the reason why a value cannot be tagged; empty if it can."""
        if value is None:
            return f"no text in {self._settings.column!r}"
        if not isinstance(value, str):
            return f"expected a text in {self._settings.column!r}; found {type(value).__name__}"
        if len(value) > self._settings.max_characters:
            return f"the text has {len(value):,} characters; the limit is {self._settings.max_characters:,}"
        return "" if is_unicode(value) else "the text is not valid Unicode"

    def _tag(self, texts: Sequence[str]) -> list[Records | str]:
        """Tag texts together. If that fails, tag them one by one to find those that fail."""
        try:
            return [to_records(entities) for entities in self._tagger.pipe(texts, len(texts))]
        except Exception as error:
            outcomes: list[Records | str] = []
            for text in texts:
                try:
                    outcomes.append(to_records(self._tagger(text)))
                except Exception as problem:
                    outcomes.append(f"the tagger failed: {type(problem).__name__}: {problem}")
            if len(texts) > 1 and all(isinstance(outcome, str) for outcome in outcomes):
                raise error  # not the fault of a text
            return outcomes


def _groups(texts: Sequence[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Split texts with many characters into groups."""
    group: list[tuple[int, str]] = []
    characters = 0
    for place, text in texts:
        if group and characters + len(text) > BLOCK_CHARACTERS:
            yield group
            group, characters = [], 0
        group.append((place, text))
        characters += len(text)
    if group:
        yield group
