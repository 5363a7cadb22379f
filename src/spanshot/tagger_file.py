"""The file `tagger.json` in the checkpoint of a tagger: its examples, character for character, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanshot.errors import DataError, EpisodeError
from spanshot.json_text import Fields, JsonValue, parse_json, to_json
from spanshot.types import LearnOptions, Sentence, Span, SupportSet

TAGGER = "tagger.json"


MOST_WORDS = 100_000
"""The largest window and batch that a file may ask for."""


def tagger_json(support: SupportSet, options: LearnOptions) -> str:
    """Return the content of `tagger.json`."""
    threshold = options.threshold
    written: dict[str, JsonValue] = {
        "nested": options.nested,
        "threshold": dict(threshold) if isinstance(threshold, Mapping) else threshold,
        "finetune": options.finetune,
        "window": options.window,
        "max_batch_words": options.max_batch_words,
    }
    examples: list[JsonValue] = [
        {
            "words": sentence.words,
            "spans": [(span.start, span.end, span.label) for span in sentence.spans],
            "text": sentence.text,
            "offsets": sentence.offsets,
        }
        for sentence in support.sentences
    ]
    return to_json({"labels": support.labels, "examples": examples, "options": written}, indent=1) + "\n"


def parse_tagger_json(text: str) -> tuple[SupportSet, LearnOptions]:
    """Return the examples and the options in `tagger.json`. Every problem is a `DataError`."""
    fields = Fields.of(parse_json(text))
    labels = tuple(_text(label, "a label") for label in fields.list("labels"))
    try:
        support = SupportSet(labels, tuple(_sentence(Fields.of(item)) for item in fields.list("examples")))
    except EpisodeError as problem:
        raise DataError(str(problem)) from None
    return support, _options(fields.object("options"))


def _options(fields: Fields) -> LearnOptions:
    nested, finetune, threshold = (fields.value(name) for name in ("nested", "finetune", "threshold"))
    if not isinstance(nested, bool) or not isinstance(finetune, bool):
        raise DataError("nested and finetune must be true or false")
    window, max_batch_words = fields.integer("window"), fields.integer("max_batch_words")
    if not 2 <= window <= MOST_WORDS or not 1 <= max_batch_words <= MOST_WORDS:
        raise DataError(f"window and max_batch_words must be at most {MOST_WORDS:,}, and at least 2 and 1")
    limits = (
        {label: _share(limit) for label, limit in threshold.items()}
        if isinstance(threshold, Mapping)
        else _share(threshold)
    )
    return LearnOptions(nested, limits, finetune, window, max_batch_words)


def _sentence(fields: Fields) -> Sentence:
    words = tuple(_text(word, "a word") for word in fields.list("words"))
    spans = []
    for item in fields.list("spans"):
        if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 3:
            raise DataError("a span must be a list of start, end and label")
        spans.append(Span(_position(item[0]), _position(item[1]), _text(item[2], "a label")))
    offsets = []
    for item in fields.list("offsets"):
        if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 2:
            raise DataError("the offsets of a word must be a list of start and end")
        offsets.append((_position(item[0]), _position(item[1])))
    return Sentence(words, tuple(spans), fields.text("text"), tuple(offsets))


def _text(value: JsonValue, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise DataError(f"{name} must be a non-empty string")
    return value


def _position(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise DataError("a position must be a whole number of at least 0")
    return value


def _share(value: JsonValue) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise DataError("a threshold must be a number in 0..1")
    return float(value)
