"""Build sentences from JSON: words with tags or spans."""

from __future__ import annotations

from collections.abc import Sequence

from spanshot.errors import SpanshotError
from spanshot.formats.files import MAX_WORDS, too_long
from spanshot.formats.json_values import JsonValue, Place
from spanshot.tags import spans_from_tags
from spanshot.types import Sentence, Span


def checked_words(words: JsonValue, place: Place) -> tuple[str, ...]:
    """Return the words of a sentence: strings, at least one, at most ``MAX_WORDS``."""
    checked = _strings(words, "words", place)
    if not checked:
        raise place.error("the sentence is empty; give it a word or take it out")
    if len(checked) > MAX_WORDS:
        raise place.error(too_long(len(checked)))
    return tuple(checked)


def tagged_sentence(words: JsonValue, tags: JsonValue, scheme: str, place: Place) -> Sentence:
    """Build a sentence from parallel lists of words and tags."""
    checked = checked_words(words, place)
    labels = _strings(tags, "labels", place)
    if len(checked) != len(labels):
        raise place.error(f"{len(checked)} words but {len(labels)} labels; there must be one label for each word")
    try:
        return Sentence(checked, spans_from_tags(labels, scheme))
    except SpanshotError as error:
        raise place.error(str(error)) from error


def spanned_sentence(words: JsonValue, spans: Sequence[Sequence[JsonValue]], place: Place) -> Sentence:
    """Build a sentence from words and (start, end, label), which may nest."""
    checked = checked_words(words, place)
    bounds = []
    for start, end, label in spans:
        whole_numbers = not isinstance(start, bool) and not isinstance(end, bool)
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(label, str) and whole_numbers):
            raise place.error(f"a span must be two word positions and a label; found {[start, end, label]}")
        bounds.append((start, end, label))
    try:
        return Sentence(checked, tuple(Span(*span) for span in bounds))
    except SpanshotError as error:
        raise place.error(str(error)) from error


def _strings(values: JsonValue, name: str, place: Place) -> list[str]:
    items = values if isinstance(values, list) else [None]
    strings = [item for item in items if isinstance(item, str)]
    if len(strings) < len(items):
        raise place.error(f"the {name} must be a list of strings")
    return strings
