"""Which format a file of examples is in, told by what is in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanshot.errors import ConfigError, DataError, did_you_mean
from spanshot.formats.char_spans import MarkedText
from spanshot.formats.doccano import fits_doccano, marked_by_doccano
from spanshot.formats.dropped import Drop
from spanshot.formats.inline import parse_inline
from spanshot.formats.json_values import Place, is_json, parse_json_records
from spanshot.formats.jsonl import fits_jsonl, marked_by_jsonl
from spanshot.formats.label_studio import fits_label_studio, marked_by_label_studio
from spanshot.formats.prodigy import fits_prodigy, marked_by_prodigy


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """A format whose files are JSON records."""

    fits: Callable[[dict[str, Any]], bool]
    read: Callable[[Iterable[tuple[Place, Any]]], Iterator[MarkedText | Drop]]


# Where records fit several, as those without a span may, the first one reads them.
RECORD_FORMATS = {
    "label-studio": RecordFormat(fits_label_studio, marked_by_label_studio),
    "prodigy": RecordFormat(fits_prodigy, marked_by_prodigy),
    "jsonl": RecordFormat(fits_jsonl, marked_by_jsonl),
    "doccano": RecordFormat(fits_doccano, marked_by_doccano),
}
FORMATS = ("inline", "jsonl", "conll", "label-studio", "doccano", "prodigy", "brat")

_LOOKS_LIKE_JSON = re.compile(r"\s*(?:\{|\[\s*[{\]])")
_MARKED = re.compile(r"\[.*\]\(.+\)")
_TAG = re.compile(r"O|[BIES]-\S+")


def find_format(name: str) -> str:
    """The format of that name, in either case and with either dash."""
    plain = name.lower().replace("_", "-")
    if plain in FORMATS:
        return plain
    raise ConfigError(f"unknown format {name!r}: the known ones are {', '.join(FORMATS)}{did_you_mean(plain, FORMATS)}")


def guess_format(path: Path, text: str) -> str:
    """The format of a file with that text. brat's is told by the file's name, and not here."""
    lines = [line for line in text.split("\n") if line.strip()]
    if _LOOKS_LIKE_JSON.match(text):
        try:
            return _guess_json(path, parse_json_records(path, text))
        except DataError:
            # A word or a sentence can begin with a brace as well.
            if is_json(lines[0]) or is_json(text) or not (_is_tagged(lines) or _is_marked(lines)):
                raise
    if _is_tagged(lines):
        return "conll"
    if any(map(_MARKED.search, lines)):
        return "inline"
    raise _unknown(path, "no JSON, no line has [marked text](LABEL), few lines end with a tag such as B-LABEL or O")


def guess_record_format(records: Iterable[Any]) -> str | None:
    """The format that most records fit; None if none fits any."""
    counts = dict.fromkeys(RECORD_FORMATS, 0)
    for record in records:
        if isinstance(record, dict):
            for name, format in RECORD_FORMATS.items():
                counts[name] += format.fits(record)
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _guess_json(path: Path, records: list[tuple[Place, Any]]) -> str:
    if name := guess_record_format(record for _, record in records):
        return name
    keys = next((list(record) for _, record in records if isinstance(record, dict)), [])
    raise _unknown(path, f"the JSON records have the keys {', '.join(map(repr, keys[:12])) or 'none'}")


def _is_tagged(lines: list[str]) -> bool:
    """Whether most lines end with a tag, and none of the others is markup."""
    others = [line for line in lines if len(line.split()) < 2 or not _TAG.fullmatch(line.split()[-1])]
    return 2 * len(others) < len(lines) and not any(_is_marked([line]) for line in others)


def _is_marked(lines: list[str]) -> bool:
    """Whether all lines can be read as markup, and one of them marks something."""
    try:
        sentences = [parse_inline(line) for line in lines]
    except DataError:
        return False
    return any(sentence.spans for sentence in sentences)


def _unknown(path: Path, looked: str) -> DataError:
    return DataError.at(
        path, None, f"cannot tell the format: {looked}; name it with --format NAME (one of {', '.join(FORMATS)})"
    )
