"""The file `tagger.json` in the checkpoint of a tagger: its examples, verbatim, and its options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanshot.errors import DataError, EpisodeError
from spanshot.json_text import Fields, JsonValue, parse_json, to_json
from spanshot.types import LearnOptions, Sentence, Span, SupportSet
from spanshot.words import BOUNDARIES

TAGGER = "tagger.json"


MOST_WORDS = 100_000
"""Maximum window and batch size that a file may set."""
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class TaggerFile:
    """The content of `tagger.json`."""

    support: SupportSet
    options: LearnOptions
    model: str = ""
    """The digest of the engine's model; empty for methods on the upper floor."""
    has_examples: bool = True
    """False if the examples were left out."""
    by_line: bool = True
    """A line break ends an entity; stored because it depends on the examples."""
    base: str = ""
    """The digest of the model before fine-tuning."""


def tagger_json(content: TaggerFile) -> str:
    """Return the text of `tagger.json`."""
    support, options = content.support, content.options
    threshold = options.threshold
    fields: dict[str, JsonValue] = {
        "nested": options.nested,
        "threshold": dict(threshold) if isinstance(threshold, Mapping) else threshold,
        "finetune": options.finetune,
        "window": options.window,
        "max_batch_words": options.max_batch_words,
    }
    if options.precision is not None:
        fields["precision"] = options.precision
    examples: list[JsonValue] = [
        {
            "words": sentence.words,
            "spans": [(span.start, span.end, span.label) for span in sentence.spans],
            "text": sentence.text,
            "offsets": sentence.offsets,
            **({"rejected": [(s.start, s.end, s.label) for s in sentence.rejected]} if sentence.rejected else {}),
            **({} if sentence.annotated is None else {"annotated": sentence.annotated}),
        }
        for sentence in support.sentences
    ]
    record: dict[str, JsonValue] = {"labels": support.labels, "examples": examples, "options": fields}
    if any(support.names):
        record["names"] = support.names
    if support.cuts:
        record["cuts"] = support.cuts
    if content.model:
        record |= {"model": content.model, "has_examples": content.has_examples, "by_line": content.by_line}
    if content.base:
        record["base"] = content.base
    return to_json(record, indent=1) + "\n"


def parse_tagger_json(text: str) -> TaggerFile:
    """Return the content of `tagger.json`. Every problem is a `DataError`."""
    fields = Fields.of(parse_json(text))
    labels = tuple(_text(label, "a label") for label in fields.list("labels"))
    names: tuple[str, ...] = ()
    if "names" in fields.record:
        names = tuple(_name(name) for name in fields.list("names"))
    cuts = tuple(_text(kind, "a kind of boundary") for kind in fields.list("cuts")) if "cuts" in fields.record else ()
    if not set(cuts) <= BOUNDARIES:
        raise DataError("cuts must be kinds of boundaries such as digit|letter")
    try:
        sentences = tuple(_sentence(Fields.of(item)) for item in fields.list("examples"))
        support = SupportSet(labels, sentences, names, cuts)
    except EpisodeError as problem:
        raise DataError(str(problem)) from None
    options = _options(fields.object("options"))
    if "model" not in fields.record:
        return TaggerFile(support, options)
    model = fields.text("model")
    has_examples, by_line = fields.value("has_examples"), fields.value("by_line")
    if not _DIGEST.fullmatch(model) or not isinstance(has_examples, bool) or not isinstance(by_line, bool):
        raise DataError("model must be a digest, has_examples and by_line true or false")
    base = fields.text("base") if "base" in fields.record else ""
    return TaggerFile(support, options, model, has_examples, by_line, base)


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
        else None
        if threshold is None
        else _share(threshold)
    )
    precision = _share(fields.value("precision")) if "precision" in fields.record else None
    if precision is not None and not 0 < precision < 1:
        raise DataError("precision must be between 0 and 1")
    return LearnOptions(nested, limits, finetune, window, max_batch_words, precision)


def _sentence(fields: Fields) -> Sentence:
    words = tuple(_text(word, "a word") for word in fields.list("words"))
    spans = _spans(fields, "spans")
    rejected = _spans(fields, "rejected") if "rejected" in fields.record else ()
    annotated = None
    if "annotated" in fields.record:
        annotated = tuple(_text(label, "a label") for label in fields.list("annotated"))
    offsets = []
    for item in fields.list("offsets"):
        if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 2:
            raise DataError("the offsets of a word must be a list of start and end")
        offsets.append((_position(item[0]), _position(item[1])))
    return Sentence(words, spans, fields.text("text"), tuple(offsets), rejected, annotated)


def _spans(fields: Fields, name: str) -> tuple[Span, ...]:
    spans = []
    for item in fields.list(name):
        if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 3:
            raise DataError("a span must be a list of start, end and label")
        spans.append(Span(_position(item[0]), _position(item[1]), _text(item[2], "a label")))
    return tuple(spans)


def _name(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise DataError("a name must be a string")
    return value


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
