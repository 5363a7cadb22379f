"""What the commands for one's own text do, as plain functions: tag, learn, check, try out examples."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from spanshot.cli.highlights import Tagged, page
from spanshot.errors import ConfigError, DataError
from spanshot.formats.examples import Examples, read_examples
from spanshot.types import Entity

if TYPE_CHECKING:
    from spanshot.tagger import Model, Progress, Tagger


# What to learn from


def examples_of(files: Sequence[Path], kind: str | None) -> list[Examples]:
    """The examples of each file."""
    return [read_examples(path, kind) for path in files]


def model_of(folder: Path | None) -> Model:
    """The model of a folder, or the one that comes with the package."""
    from spanshot.tagger import embedded_model, load_model

    return embedded_model() if folder is None else load_model(folder)


def predictor_of(
    examples: Sequence[Examples],
    folder: Path | None,
    thresholds: Sequence[str],
    nested: bool,
    finetune: bool = False,
    progress: Progress | None = None,
) -> Tagger:
    """What has learned the examples; without any, what was saved in the folder."""
    from spanshot.tagger import load

    if not examples and folder is None:
        raise ConfigError("give examples with --examples FILE, or with --model a folder that `spanshot learn` wrote")
    limit = threshold_of(thresholds)
    if examples:
        sentences = [sentence for own in examples for sentence in own.sentences]
        return model_of(folder).learn(sentences, nested=nested, threshold=limit, finetune=finetune, progress=progress)
    assert folder is not None
    saved = load(folder)
    if nested and not saved.nested:
        learned = saved.model_or_error().learn(saved.support, nested=True, threshold=saved.threshold)
        saved = replace(learned, window=saved.window, overlap=saved.overlap)
    return replace(saved, threshold=limit) if thresholds else saved


def threshold_of(given: Sequence[str]) -> float | dict[str, float]:
    """``0.5`` for all labels, or ``city=0.5`` for one.

    >>> threshold_of(["0.3"]), threshold_of(["city=0.5", "day=1"])
    (0.3, {'city': 0.5, 'day': 1.0})
    """
    by_label: dict[str, float] = {}
    for text in given:
        label, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise ConfigError(f"--threshold must be a number, or LABEL=number; found {text!r}") from None
        if not label:
            if len(given) > 1:
                raise ConfigError("--threshold: give one number for all labels, or LABEL=number for each")
            return value
        by_label[label] = value
    return by_label or 0.0


# Texts in


@dataclass(frozen=True)
class Given:
    """A text to tag, and what stood beside it in its JSON line."""

    text: str
    beside: dict[str, Any]


def texts_in(texts: Sequence[str], files: Sequence[Path], whole: bool) -> Iterator[Given]:
    """The texts of the command line and of files; from standard input where neither is given, or for ``-``.

    A line is a text, unless ``whole`` takes each file as one. Of JSON lines the field "text" is taken.
    """
    yield from (Given(text, {}) for text in texts)
    for path in files or ([] if texts else [Path("-")]):
        yield from _texts_of(path, whole)


def _texts_of(path: Path, whole: bool) -> Iterator[Given]:
    with ExitStack() as stack:
        name = "standard input" if str(path) == "-" else str(path)
        file: IO[str] = sys.stdin
        if str(path) != "-":
            file = stack.enter_context(path.open(encoding="utf-8", newline=""))
        try:
            if whole:
                yield Given(file.read(), {})
                return
            is_json: bool | None = True if path.suffix in {".jsonl", ".ndjson"} else None
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                if is_json is None:
                    is_json = line.lstrip("\ufeff").startswith('{"')
                yield _record(name, number, line) if is_json else Given(line.rstrip("\r\n").lstrip("\ufeff"), {})
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: not UTF-8 text (byte {error.start}); convert it first") from None


def _record(name: str, number: int, line: str) -> Given:
    try:
        record = json.loads(line.lstrip("\ufeff"))
    except json.JSONDecodeError as error:
        raise DataError.at(name, number, f"not a JSON line: {error.msg}; give plain text or JSON lines") from None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise DataError.at(name, number, 'expected a JSON object with a "text"')
    return Given(record["text"], {key: value for key, value in record.items() if key not in {"text", "entities"}})


# Entities out


def tagged(predictor: Tagger, given: Iterable[Given], batch_size: int) -> Iterator[tuple[Given, list[Entity]]]:
    """Each text with its entities, in order, as they come."""
    waiting: list[Given] = []

    def texts() -> Iterator[str]:
        for one in given:
            waiting.append(one)
            yield one.text

    for entities in predictor.pipe(texts(), batch_size):
        yield waiting.pop(0), entities


def json_line(given: Given, entities: Sequence[Entity], because: bool) -> str:
    """One line of JSON: the text, its entities, and what stood beside it."""
    found = []
    for entity in entities:
        record: dict[str, Any] = {
            "start": entity.start,
            "end": entity.end,
            "label": entity.label,
            "text": entity.text,
            "score": round(entity.score, 4),
        }
        if because:
            record["because"] = [
                {"text": reason.text, "example": reason.example, "weight": round(reason.weight, 4)}
                for reason in entity.because
            ]
        found.append(record)
    return json.dumps({"text": given.text, "entities": found, **given.beside}, ensure_ascii=False)


def write_page(path: Path, results: Iterable[tuple[Given, list[Entity]]], labels: Sequence[str], title: str) -> int:
    """A page of all texts; how many they were."""
    count = 0

    def documents() -> Iterator[Tagged]:
        nonlocal count
        for given, entities in results:
            count += 1
            yield Tagged(given.text, entities)

    if not path.parent.is_dir():
        raise DataError(f"{path.parent}: no such folder; make it first")
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(page(documents(), labels, title))
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return count
