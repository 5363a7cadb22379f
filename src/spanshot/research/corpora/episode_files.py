"""Episode files: JSON lines in the layout of Few-NERD's release, one step wider so that any episode fits.

A part (support or query) is ``{"word": [[...]], "label": [[...]]}`` with IO labels. Where IO cannot show
the spans exactly (they nest, or two of one label touch), ``"spans": [[[start, end, label], ...], ...]``
stands in place of ``"label"``: a program that knows only the narrower layout then stops, instead of reading
other spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from spanshot.errors import DataError, SpanshotError
from spanshot.files import write_text
from spanshot.formats.files import read_text
from spanshot.formats.json_values import Place, parse_json, parse_json_lines
from spanshot.research.corpora.json_files import spanned_sentence, tagged_sentence
from spanshot.research.corpora.snips import snips_episodes
from spanshot.tags import spans_from_tags, tags_from_spans
from spanshot.types import Episode, Sentence, SupportSet


def read_episodes(path: str | Path) -> list[Episode]:
    """Episodes of any known file, told apart by its content: SNIPS JSON, or lines of Few-NERD's or ours."""
    path = Path(path)
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
    """Episodes of JSON lines, as ``write_episodes`` and Few-NERD's release have them."""
    path = Path(path)
    return _episodes_of_lines(path, read_text(path))


def _episodes_of_lines(path: Path, text: str) -> list[Episode]:
    return [_episode(record, place) for place, record in parse_json_lines(path, text)]


def _episode(record: Any, place: Place) -> Episode:
    support, query = (_sentences(record, key, place) for key in ("support", "query"))
    domain = place.take(record, "domain", str) if "domain" in record else ""
    types = place.take(record, "types", list) if "types" in record else None
    if types is not None and not all(isinstance(label, str) for label in types):
        raise place.error("'types' must be a list of strings")
    try:
        known = SupportSet.of(support) if types is None else SupportSet(tuple(types), tuple(support))
        return Episode(known, tuple(query), domain)
    except SpanshotError as error:
        raise place.error(str(error)) from error


def _sentences(record: Any, key: str, place: Place) -> list[Sentence]:
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
    """Write an episode a line; ``read_episodes`` gives back equal values."""
    write_text(path, (json.dumps(_record(episode), ensure_ascii=False) + "\n" for episode in episodes))


def _record(episode: Episode) -> dict[str, Any]:
    record = {
        "support": _part(episode.support.sentences),
        "query": _part(episode.query),
        "types": list(episode.support.labels),
    }
    return {**record, "domain": episode.domain} if episode.domain else record


def _part(sentences: Sequence[Sentence]) -> dict[str, Any]:
    words = [list(sentence.words) for sentence in sentences]
    tags = [_exact_tags(sentence) for sentence in sentences]
    if None not in tags:
        return {"word": words, "label": tags}
    spans = [[[span.start, span.end, span.label] for span in sentence.spans] for sentence in sentences]
    return {"word": words, "spans": spans}


def _exact_tags(sentence: Sentence) -> list[str] | None:
    """IO tags that are read back as the same spans, if there are such."""
    try:
        tags = tags_from_spans(len(sentence), sentence.spans, "io")
    except DataError:
        return None
    return tags if spans_from_tags(tags, "io") == sentence.spans else None
