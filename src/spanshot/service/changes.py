"""Changes of taggers: create, add and remove examples and labels, return to an earlier version.

Each is done when the new version is on disk, and only then acknowledged.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

from spanshot.errors import SpanshotWarning
from spanshot.formats.examples import parse_examples
from spanshot.formats.json_values import JsonValue
from spanshot.formats.jsonl import record_of
from spanshot.json_text import to_json
from spanshot.service.core import Service
from spanshot.service.errors import ServiceError, not_found, too_long, too_many
from spanshot.service.schemas import ExampleIn, MoreExamples, NewTagger
from spanshot.service.settings import Limits
from spanshot.service.store import StoredTagger
from spanshot.tagger import Tagger, names_of
from spanshot.types import LearnOptions, Sentence, SupportSet

Saved = tuple[StoredTagger, Tagger]
ExampleRecord = str | Mapping[str, JsonValue]


def create(service: Service, request: NewTagger) -> Saved:
    """Learn a new tagger."""
    sentences = sentences_of(request.examples, service.limits)
    with service.store.changing(request.name):
        if service.store.versions(request.name):
            raise ServiceError(409, "exists", f"there is a tagger {request.name!r} already; choose another name")
        if (count := service.store.count()) >= service.limits.taggers:
            raise ServiceError(507, "too_many_taggers", f"there are {count:,} taggers, the most that are allowed")
        support = SupportSet.of(sentences, names_of(request.labels))
        check_support(support, service.limits)
        if request.threshold is not None and request.precision is not None:
            raise ServiceError(422, "invalid", "give either a threshold or a target precision, not both")
        options = LearnOptions(request.nested, request.threshold, precision=request.precision)
        tagger = service.model.learn_support(support, options)
        return service.store.save(request.name, tagger), tagger


def add(service: Service, name: str, request: MoreExamples) -> Saved:
    """Add examples and labels."""
    sentences = sentences_of(request.examples, service.limits)
    if not sentences and not request.labels:
        raise ServiceError(422, "invalid", "give examples or labels to add")

    def more(tagger: Tagger) -> Tagger:
        names = tagger.support.label_names | names_of(request.labels)
        check_support(SupportSet.of([*tagger.support.sentences, *sentences], names), service.limits)
        return tagger.add(sentences, labels=request.labels)

    return changed(service, name, more)


def remove_example(service: Service, name: str, example: str) -> Saved:
    """Remove the examples with that id. Labels stay, even without examples."""

    def fewer(tagger: Tagger) -> Tagger:
        left = [sentence for sentence in tagger.support.sentences if example_id(sentence) != example]
        if len(left) == len(tagger.support.sentences):
            raise not_found("example", example)
        return with_sentences(tagger, left)

    return changed(service, name, fewer)


def remove_label(service: Service, name: str, label: str) -> Saved:
    """Remove a label. Its examples stay, without their marks."""

    def fewer(tagger: Tagger) -> Tagger:
        if label not in tagger.labels:
            raise not_found("label", label)
        return tagger.remove(label)

    return changed(service, name, fewer)


def restore(service: Service, name: str, version: int) -> Saved:
    """Save an earlier version as the newest one."""
    with service.store.changing(name):
        tagger = service.store.load(service.store.find(name, version), service.model)
        return service.store.save(name, tagger), tagger


def changed(service: Service, name: str, change: Callable[[Tagger], Tagger]) -> Saved:
    """Change the newest version of a tagger and save the result."""
    with service.store.changing(name):
        tagger = change(service.store.load(service.store.find(name), service.model))
        return service.store.save(name, tagger), tagger


def with_sentences(tagger: Tagger, sentences: Iterable[Sentence]) -> Tagger:
    """Learn other sentences with the labels and options of a tagger."""
    support = SupportSet.of(sentences, tagger.support.label_names, tagger.support.cuts)
    assert tagger.model is not None
    return tagger.model.learn_support(support, tagger.options, known=tagger.sentence_tagger)


def sentences_of(examples: Sequence[str | ExampleIn], limits: Limits) -> tuple[Sentence, ...]:
    """Read examples; warn of spans that cannot be used. Strings are markup, never names of files."""
    if len(examples) > limits.examples:
        raise too_many("examples", limits.examples, len(examples))
    records: list[ExampleRecord] = []
    for example in examples:
        text = example if isinstance(example, str) else example.text
        if len(text) > limits.example:
            raise too_long("example", limits.example, len(text))
        records.append(example if isinstance(example, str) else example.model_dump(exclude_defaults=True))
    if not records:
        return ()
    parsed = parse_examples(records, "jsonl" if any(not isinstance(record, str) for record in records) else None)
    if parsed.dropped:
        warnings.warn(parsed.dropped.summary(), SpanshotWarning, stacklevel=2)
    return parsed.sentences


def check_support(support: SupportSet, limits: Limits) -> None:
    """Raise an error if a support set is beyond the limits."""
    if len(support.labels) > limits.labels:
        raise too_many("labels", limits.labels, len(support.labels))
    if len(support.sentences) > limits.examples:
        raise too_many("examples", limits.examples, len(support.sentences))
    longest = max(map(len, (*support.labels, *support.names)))
    if longest > limits.label:
        raise too_long("label", limits.label, longest)


def example_id(sentence: Sentence) -> str:
    """Return the id of an example: a digest of its content."""
    return hashlib.sha256(to_json(record_of(sentence)).encode("utf-8")).hexdigest()[:16]
