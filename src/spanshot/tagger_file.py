"""The file ``tagger.json`` in the checkpoint of a tagger: its examples, character for character, and its options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from spanshot.errors import DataError, EpisodeError
from spanshot.json_text import Fields, JsonValue, parse_json, to_json
from spanshot.types import Sentence, Span, SupportSet

TAGGER = "tagger.json"


def tagger_json(support: SupportSet, options: Mapping[str, JsonValue]) -> str:
    """Return the content of ``tagger.json``."""
    examples: list[JsonValue] = [
        {
            "words": sentence.words,
            "spans": [(span.start, span.end, span.label) for span in sentence.spans],
            "text": sentence.text,
            "offsets": sentence.offsets,
        }
        for sentence in support.sentences
    ]
    return to_json({"labels": support.labels, "examples": examples, "options": options}, indent=1) + "\n"


def parse_tagger_json(text: str) -> tuple[SupportSet, Fields]:
    """Return the examples and the options in ``tagger.json``. Every problem is a ``DataError``."""
    fields = Fields.of(parse_json(text))
    labels = tuple(_text(label, "a label") for label in fields.list("labels"))
    try:
        support = SupportSet(labels, tuple(_sentence(Fields.of(item)) for item in fields.list("examples")))
    except EpisodeError as problem:
        raise DataError(str(problem)) from None
    return support, fields.object("options")


def parse_threshold(value: JsonValue) -> float | dict[str, float]:
    """Return a threshold: one for all labels, or one per label."""
    if isinstance(value, Mapping):
        return {label: _share(threshold) for label, threshold in value.items()}
    return _share(value)


def _sentence(fields: Fields) -> Sentence:
    words = tuple(_text(word, "a word") for word in fields.list("words"))
    spans = []
    for item in fields.list("spans"):
        if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 3:
            raise DataError("a span must be a list of start, end and label")
        spans.append(Span(_whole(item[0]), _whole(item[1]), _text(item[2], "a label")))
    offsets = []
    for item in fields.list("offsets"):
        if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 2:
            raise DataError("the offsets of a word must be a list of start and end")
        offsets.append((_whole(item[0]), _whole(item[1])))
    return Sentence(words, tuple(spans), fields.text("text"), tuple(offsets))


def _text(value: JsonValue, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise DataError(f"{what} must be a string that is not empty")
    return value


def _whole(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise DataError("a position must be a whole number from 0 on")
    return value


def _share(value: JsonValue) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not (math.isfinite(value) and 0 <= value <= 1):
        raise DataError("a threshold must be a number in 0..1")
    return float(value)
