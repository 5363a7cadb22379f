"""Sentences from JSON: words with tags or spans, checked as they are put together."""

from __future__ import annotations

from typing import Any

from spanshot.errors import SpanshotError
from spanshot.formats.files import MAX_WORDS, too_long
from spanshot.formats.json_values import Place
from spanshot.tags import spans_from_tags
from spanshot.types import Sentence, Span


def checked_words(words: Any, place: Place) -> tuple[str, ...]:
    """The words of one sentence: strings, at least one, not more than ``MAX_WORDS``."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise place.error("the words must be a list of strings")
    if not words:
        raise place.error("the sentence is empty; give it a word or take it out")
    if len(words) > MAX_WORDS:
        raise place.error(too_long(len(words)))
    return tuple(words)


def tagged_sentence(words: Any, tags: Any, scheme: str, place: Place) -> Sentence:
    """A sentence from parallel lists of words and tags."""
    words = checked_words(words, place)
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise place.error("the labels must be a list of strings")
    if len(words) != len(tags):
        raise place.error(f"{len(words)} words but {len(tags)} labels; there must be one label for each word")
    try:
        return Sentence(words, spans_from_tags(tags, scheme))
    except SpanshotError as error:
        raise place.error(str(error)) from error


def spanned_sentence(words: Any, spans: list[tuple[Any, Any, Any]], place: Place) -> Sentence:
    """A sentence from words and (start, end, label), which may nest."""
    words = checked_words(words, place)
    for start, end, label in spans:
        if type(start) is not int or type(end) is not int or not isinstance(label, str):
            raise place.error(f"a span must be two word positions and a label; found {[start, end, label]}")
    try:
        return Sentence(words, tuple(Span(*span) for span in spans))
    except SpanshotError as error:
        raise place.error(str(error)) from error
