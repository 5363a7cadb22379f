"""Guess the format of a file of examples from its content."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spanshot.errors import ConfigError, DataError, did_you_mean
from spanshot.formats.brat import is_brat
from spanshot.formats.char_spans import MarkedText
from spanshot.formats.docbin import SUFFIX
from spanshot.formats.doccano import fits_doccano, read_doccano
from spanshot.formats.dropped import Drop
from spanshot.formats.files import lines_of
from spanshot.formats.inline import has_markup, parse_inline
from spanshot.formats.json_values import JsonObject, JsonRecords, JsonValue, Place, is_json, keys_of
from spanshot.formats.jsonl import fits_jsonl, read_jsonl
from spanshot.formats.label_studio import fits_label_studio, read_label_studio
from spanshot.formats.prodigy import fits_prodigy, read_prodigy
from spanshot.formats.project import is_project
from spanshot.formats.table_files import is_table_file


class UnknownFormatError(DataError):
    """The content of a file fits no format."""

    def __init__(self, source: Path | str, reason: str) -> None:
        problem = f"{source}: cannot tell the format: {reason}"
        super().__init__(f"{problem}; name it with --format NAME (one of {', '.join(FORMATS)})")
        self.problem = problem
        """The message without the advice for the command line."""


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """A format whose files are JSON records."""

    fits: Callable[[JsonObject], bool]
    read: Callable[[Iterable[tuple[Place, JsonValue]]], Iterator[MarkedText | Drop]]


# Records without a span may fit several formats; the first one then reads them.
RECORD_FORMATS = {
    "label-studio": RecordFormat(fits_label_studio, read_label_studio),
    "prodigy": RecordFormat(fits_prodigy, read_prodigy),
    "jsonl": RecordFormat(fits_jsonl, read_jsonl),
    "doccano": RecordFormat(fits_doccano, read_doccano),
}
FORMATS = ("inline", "jsonl", "conll", "label-studio", "doccano", "prodigy", "brat", "spacy", "table")

_LOOKS_LIKE_JSON = re.compile(r"\s*(?:\{|\[\s*[{\]])")
_TAG = re.compile(r"O|[BIES]-\S+")


def format_of_name(path: Path) -> str | None:
    """Return the format of a file or folder whose name says it: brat, DocBins of spaCy, tables and projects."""
    if is_brat(path):
        return "brat"
    if is_project(path):
        return "project"
    return "spacy" if path.suffix.lower() == SUFFIX else "table" if is_table_file(path) else None


def find_format(name: str) -> str:
    """Return the format of that name, in either case and with either dash."""
    plain = name.lower().replace("_", "-")
    if plain in FORMATS:
        return plain
    raise ConfigError(f"unknown format {name!r}: choose one of {', '.join(FORMATS)}{did_you_mean(plain, FORMATS)}")


def guess_format(source: Path | str, text: str) -> str:
    """Guess the format of a file from its text. `format_of_name` recognises the formats that are not text."""
    if _LOOKS_LIKE_JSON.match(text):
        try:
            return _guess_json(source, JsonRecords(source, text))
        except DataError:
            # A word or a sentence can begin with a brace as well.
            first = next(_filled_lines(text))
            if is_json(first) or is_json(text) or not (_is_tagged(text) or _is_marked(_filled_lines(text))):
                raise
    if _is_tagged(text):
        return "conll"
    if any(map(has_markup, _filled_lines(text))):
        return "inline"
    reason = "no JSON, no line has [marked text](LABEL), few lines end with a tag such as B-LABEL or O"
    raise UnknownFormatError(source, reason)


def guess_record_format(records: Iterable[JsonValue]) -> str | None:
    """Return the format that most records fit; None if none fits any."""
    counts = dict.fromkeys(RECORD_FORMATS, 0)
    for record in records:
        if isinstance(record, dict):
            for name, format in RECORD_FORMATS.items():
                counts[name] += format.fits(record)
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _guess_json(source: Path | str, records: JsonRecords) -> str:
    if name := guess_record_format(record for _, record in records):
        return name
    keys = next((keys_of(record) for _, record in records if isinstance(record, dict)), "none")
    raise UnknownFormatError(source, f"the JSON records have the keys {keys}")


def _filled_lines(text: str) -> Iterator[str]:
    return (line for _, line in lines_of(text) if line.strip())


def _is_tagged(text: str) -> bool:
    """Return whether most lines end with a tag, and none of the others is markup."""
    count, untagged = 0, 0
    for line in _filled_lines(text):
        count += 1
        untagged += not _ends_with_tag(line)
    return 2 * untagged < count and not any(
        _is_marked([line]) for line in _filled_lines(text) if not _ends_with_tag(line)
    )


def _ends_with_tag(line: str) -> bool:
    cells = line.rsplit(maxsplit=1)
    return len(cells) == 2 and _TAG.fullmatch(cells[1]) is not None


def _is_marked(lines: Iterable[str]) -> bool:
    """Return whether all lines can be read as markup, and one of them marks something."""
    marked = False
    try:
        for line in lines:
            marked = bool(parse_inline(line).spans) or marked
    except DataError:
        return False
    return marked
