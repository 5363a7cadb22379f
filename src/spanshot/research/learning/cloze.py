"""Pairwise cloze: a phrase that two sentences share, blanked in one of them and to be found in the other."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spanshot.errors import DataError
from spanshot.types import Sentence, Span

BLANK = "_"
VALUE = "value"
MOST_SENTENCES = 10_000
LONGEST_PHRASE = 3


@dataclass(frozen=True)
class ClozePair:
    """A sentence with a blank, and one in which what fills it is marked."""

    template: Sentence
    sentence: Sentence


def blanked(sentence: Sentence, spans: Sequence[Span]) -> Sentence:
    """The sentence with each of the spans, which do not overlap, as one blank.

    >>> blanked(Sentence(("go", "to", "New", "York")), [Span(2, 4, "city")]).words
    ('go', 'to', '_')
    """
    words = list(sentence.words)
    for span in sorted(spans, reverse=True):
        words[span.start : span.end] = [BLANK]
    return Sentence(tuple(words))


def cloze_pairs(sentences: Sequence[Sentence], size: int) -> Callable[[random.Random], list[ClozePair]]:
    """Draws of ``size`` pairs from unlabelled text; what is marked in the sentences is not looked at."""
    places = _shared_phrases(_some(sentences))
    if not places:
        raise DataError("no phrase stands in two of the training sentences, so there are no cloze pairs to draw")
    phrases = list(places)

    def draw(rng: random.Random) -> list[ClozePair]:
        pairs = []
        for _ in range(size):
            (first, span), (second, answer) = rng.sample(places[rng.choice(phrases)], 2)
            pairs.append(ClozePair(blanked(first, [span]), Sentence(second.words, (answer,))))
        return pairs

    return draw


def _some(sentences: Sequence[Sentence]) -> Sequence[Sentence]:
    """At most so many, evenly spread: an index of every phrase of a large corpus would fill the memory."""
    if len(sentences) <= MOST_SENTENCES:
        return sentences
    return [sentences[number * len(sentences) // MOST_SENTENCES] for number in range(MOST_SENTENCES)]


def _shared_phrases(sentences: Sequence[Sentence]) -> dict[tuple[str, ...], list[tuple[Sentence, Span]]]:
    """Where each phrase stands that two sentences share and that is rare enough to mean something."""
    found: dict[tuple[str, ...], dict[int, Span]] = defaultdict(dict)
    for number, sentence in enumerate(sentences):
        lowered = [word.lower() for word in sentence.words]
        for start in range(len(lowered)):
            for end in range(start + 1, min(start + LONGEST_PHRASE, len(lowered)) + 1):
                found[tuple(lowered[start:end])].setdefault(number, Span(start, end, VALUE))
    most = max(2, len(sentences) // 50)
    return {
        phrase: [(sentences[number], span) for number, span in own.items()]
        for phrase, own in found.items()
        if 2 <= len(own) <= most and phrase[0].isalnum() and phrase[-1].isalnum()
    }
