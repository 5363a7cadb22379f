"""Episode files: JSON lines in the layout of Few-NERD's release, extended so that any episode fits.

A part (support or query) is ``{"word": [[...]], "label": [[...]]}`` with IO labels. Where IO labels cannot express the
spans exactly (nested spans, or touching spans of one label), ``"spans": [[[start, end, label], ...], ...]`` replaces
``"label"``, so that a program that knows only the original layout stops instead of reading other spans.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from spanshot.errors import ConfigError, DataError, SpanshotError
from spanshot.evaluation.report import Metric
from spanshot.files import write_text
from spanshot.formats.files import read_text
from spanshot.formats.json_values import JsonValue, Place, parse_json, parse_json_lines
from spanshot.research.corpora.json_files import spanned_sentence, tagged_sentence
from spanshot.research.corpora.reading import read_once
from spanshot.research.corpora.snips import snips_episodes
from spanshot.research.corpora.source import Source, distinct_sentences, known_split
from spanshot.tags import spans_from_tags, tags_from_spans
from spanshot.types import Episode, Sentence, SupportSet


@dataclass(frozen=True)
class EpisodeFiles(Source):
    """Files of episodes, as written by `spanshot sample`."""

    metric: ClassVar[Metric] = "micro_f1"

    train: str
    """Training episodes."""
    dev: str
    """Dev episodes, which select the best step."""
    test: str = ""
    """Test episodes."""

    @override
    def training(self) -> Callable[[random.Random], Episode]:
        episodes = read_episodes(self.train)
        return lambda rng: rng.choice(episodes)

    @override
    def episodes(self, split: str) -> list[Episode]:
        path = {"train": self.train, "dev": self.dev, "test": self.test}[known_split(split)]
        if not path:
            raise ConfigError(f"data.{split} is not set; give the file with the {split} episodes")
        return read_episodes(path)

    @override
    def sentences(self) -> list[Sentence]:
        return distinct_sentences(read_episodes(self.train))


@read_once
def read_episodes(path: Path) -> list[Episode]:
    """Read episodes from SNIPS JSON or from JSON lines, recognised by their content."""
    text = read_text(path)
    first_line = next((line for line in text.split("\n") if line.strip()), "")
    try:
        first = json.loads(first_line)
    except (json.JSONDecodeError, RecursionError):
        first = None
    if not first_line or (isinstance(first, dict) and {"support", "query"} & first.keys()):
        return _episodes_of_lines(path, text)
    return snips_episodes(path, parse_json(path, text))


def read_episode_lines(path: str | Path) -> list[Episode]:
    """Read episodes from JSON lines, as written by `write_episodes` and in Few-NERD's release."""
    path = Path(path)
    return _episodes_of_lines(path, read_text(path))


def _episodes_of_lines(path: Path, text: str) -> list[Episode]:
    return [_episode(record, place) for place, record in parse_json_lines(path, text)]


def _episode(record: JsonValue, place: Place) -> Episode:
    support, query = (_sentences(record, key, place) for key in ("support", "query"))
    fields = place.record(record, "support")
    domain = place.take(record, "domain", str) if "domain" in fields else ""
    types = place.take(record, "types", list) if "types" in fields else None
    if types is not None and not all(isinstance(label, str) for label in types):
        raise place.error("'types' must be a list of strings")
    try:
        support_set = SupportSet.of(support) if types is None else SupportSet(tuple(types), tuple(support))
        return Episode(support_set, tuple(query), domain)
    except SpanshotError as error:
        raise place.error(str(error)) from error


def _sentences(record: JsonValue, key: str, place: Place) -> list[Sentence]:
    part = place.take(record, key, dict)
    place = place.within(key)
    marks_key = "spans" if "spans" in part else "label"
    words, marks = place.take(part, "word", list), place.take(part, marks_key, list)
    if len(words) != len(marks):
        raise place.error(f"{len(words)} sentences in 'word' but {len(marks)} in {marks_key!r}")
    sentences = []
    for number, (sentence, marked) in enumerate(zip(words, marks, strict=True), start=1):
        inside = place.within(f"sentence {number}")
        if marks_key == "label":
            sentences.append(tagged_sentence(sentence, marked, "io", inside))
            continue
        if not isinstance(marked, list) or not all(isinstance(s, list) and len(s) == 3 for s in marked):
            raise inside.error("the spans must be a list of [start, end, label]")
        sentences.append(spanned_sentence(sentence, marked, inside))
    return sentences


def write_episodes(path: str | Path, episodes: Iterable[Episode]) -> None:
    """Write one episode per line; `read_episodes` returns equal values."""
    write_text(path, (json.dumps(_record(episode), ensure_ascii=False) + "\n" for episode in episodes))


def _record(episode: Episode) -> dict[str, object]:
    record: dict[str, object] = {
        "support": _part(episode.support.sentences),
        "query": _part(episode.query),
        "types": list(episode.support.labels),
    }
    return {**record, "domain": episode.domain} if episode.domain else record


def _part(sentences: Sequence[Sentence]) -> dict[str, object]:
    words = [list(sentence.words) for sentence in sentences]
    tags = [_exact_tags(sentence) for sentence in sentences]
    if None not in tags:
        return {"word": words, "label": tags}
    spans = [[[span.start, span.end, span.label] for span in sentence.spans] for sentence in sentences]
    return {"word": words, "spans": spans}


def _exact_tags(sentence: Sentence) -> list[str] | None:
    """Return IO tags if they are read back as the same spans."""
    try:
        tags = tags_from_spans(len(sentence), sentence.spans, "io")
    except DataError:
        return None
    return tags if spans_from_tags(tags, "io") == sentence.spans else None
