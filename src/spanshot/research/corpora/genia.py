"""GENIA: biomedical abstracts with nested entities."""

from __future__ import annotations

from pathlib import Path

from spanshot.formats.json_values import read_json_lines
from spanshot.research.corpora.json_files import spanned_sentence
from spanshot.research.corpora.reading import read_once
from spanshot.types import Sentence


@read_once
def read_genia(path: Path) -> list[Sentence]:
    """Read JSON lines ``{"id", "tokens", "entities": [{"start", "end" (exclusive), "type"}]}``."""
    sentences = []
    for place, record in read_json_lines(path):
        words, entities = place.take(record, "tokens", list), place.take(record, "entities", list)
        spans = []
        for number, entity in enumerate(entities, start=1):
            inside = place.within(f"entity {number}")
            spans.append(
                (
                    inside.take(entity, "start", int),
                    inside.take(entity, "end", int),
                    inside.take(entity, "type", str),
                )
            )
        sentences.append(spanned_sentence(words, spans, place))
    return sentences
