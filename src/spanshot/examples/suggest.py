"""Choose the texts that are most worth annotating next.

A text is worth annotating if it has suggestions whose scores are near the threshold of their label, above all of
labels with few examples. Texts are chosen one by one, and those that resemble a chosen one are worth less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spanshot.errors import ConfigError, InputError
from spanshot.heads.linear import Floats
from spanshot.linear_tagger import PIECES_PER_WORD, LinearTagger
from spanshot.tagger import ReadText, Tagger
from spanshot.types import Entity, LearnOptions

WIDTH = 1.5
"""Distance of a score from its threshold, in logits, at which a suggestion is worth 60 % of one at the threshold."""
MOST_DOUBTS = 3
"""Suggestions of a text that count, the most doubtful ones: long texts have many, but also take longer to annotate."""
_BATCH = 256


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text that is worth annotating."""

    position: int
    """Its position among the texts, counted from 0."""
    text: str
    entities: tuple[Entity, ...]
    """The entities that the tagger finds."""
    doubt: Entity | None
    """The suggestion whose score is nearest to the threshold; None if there is no suggestion."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    position: int
    worth: float
    """0 if there is no suggestion."""
    vector: Floats | None  # [size]: mean of the suggestions' vectors, by worth
    doubt: Entity | None


def suggest(tagger: Tagger, texts: Iterable[str], count: int = 10) -> list[Suggestion]:
    """Return at most ``count`` texts, the most worth annotating first. Texts among the examples are left out."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"suggest expects a list of texts; found {type(texts).__name__}")
    texts = list(texts)
    chosen = _order(tagger, texts, count)[:count]
    tagged = tagger.pipe(texts[candidate.position] for candidate in chosen)
    return [
        Suggestion(candidate.position, texts[candidate.position], tuple(entities), candidate.doubt)
        for candidate, entities in zip(chosen, tagged, strict=True)
    ]


def order(tagger: Tagger, texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that are not among the examples, the most worth annotating first."""
    return [candidate.position for candidate in _order(tagger, texts, len(texts))]


def _order(tagger: Tagger, texts: Sequence[str], count: int) -> list[_Candidate]:
    candidates = list(_candidates(tagger, texts))
    with_doubts = [candidate for candidate in candidates if candidate.worth > 0]
    certain = [candidate for candidate in candidates if candidate.worth <= 0]
    return [*(with_doubts[at] for at in _pick(with_doubts, count)), *certain]


def _pick(candidates: Sequence[_Candidate], count: int) -> list[int]:
    """Return positions: each time the one with the highest worth, times its distance from those before it."""
    if not candidates:
        return []
    worth = np.array([candidate.worth for candidate in candidates])
    vectors = np.stack([candidate.vector for candidate in candidates if candidate.vector is not None])
    nearest = np.zeros(len(candidates))  # likeness to the most similar one that was picked
    picked: list[int] = []
    is_free = np.ones(len(candidates), bool)
    for _ in range(min(count, len(candidates))):
        at = int(np.argmax(np.where(is_free, worth * (1 - nearest), -1.0)))
        is_free[at] = False
        picked.append(at)
        nearest = np.maximum(nearest, np.clip(vectors @ vectors[at], 0, 1))
    return [*picked, *np.flatnonzero(is_free).tolist()]


def _candidates(tagger: Tagger, texts: Sequence[str]) -> Iterable[_Candidate]:
    """Yield the texts that are not among the examples, each once."""
    linear = tagger.sentence_tagger
    if not isinstance(linear, LinearTagger):
        raise ConfigError("this model cannot suggest texts; use the model in the package, or one of `spanshot export`")
    scorer = _Scorer(tagger, linear)
    annotated = {sentence.words for sentence in tagger.support.sentences}
    for begin in range(0, len(texts), _BATCH):
        batch: list[tuple[int, ReadText]] = []
        for position, text in enumerate(texts[begin : begin + _BATCH], begin):
            if not isinstance(text, str):
                raise InputError(f"expected texts (str); found {type(text).__name__}")
            read = tagger.read(text)
            key = tuple(word.text for word in read.words)
            if read.words and key not in annotated:
                annotated.add(key)
                batch.append((position, read))
        yield from scorer.candidates(texts, batch)


class _Scorer:
    """Finds the suggestions of texts, and how doubtful they are."""

    def __init__(self, tagger: Tagger, linear: LinearTagger) -> None:
        self._tagger = tagger
        self._any_score = linear.with_options(LearnOptions(nested=tagger.options.nested, threshold=0.0))
        self._limits = _logit(np.array([linear.thresholds[label] for label in linear.labels]))  # [labels]
        self._need = 1 / np.sqrt(1 + np.array(linear.head.counts))  # [labels]: of further examples

    def candidates(self, texts: Sequence[str], batch: Sequence[tuple[int, ReadText]]) -> Iterable[_Candidate]:
        """Yield the worth of each text, in order."""
        linear = self._any_score
        windows = [
            (number, start, [word.text for word in read.words[start:end]])
            for number, (_, read) in enumerate(batch)
            for start, end in read.windows
        ]
        doubts: list[list[tuple[float, Floats, Entity]]] = [[] for _ in batch]
        bounds = [linear.bounds(len(words)) for _, _, words in windows]
        room = PIECES_PER_WORD * linear.options.max_batch_words
        for at, spans in linear.learner.encoder.encode([words for _, _, words in windows], bounds, room):
            number, first, words = windows[at]
            position, read = batch[number]
            for choice in linear.choose(words, spans):
                start, end = spans.bounds[choice.row].tolist()
                start, end = read.words[first + start].start, read.words[first + end - 1].end
                entity = Entity(texts[position][start:end], linear.labels[choice.label], start, end, choice.score)
                distance = (float(_logit(np.array(choice.score))) - self._limits[choice.label]) / WIDTH
                worth = float(self._need[choice.label] * np.exp(-0.5 * distance**2))
                doubts[number].append((worth, spans.vectors[choice.row], entity))
        for (position, _), text_doubts in zip(batch, doubts, strict=True):
            text_doubts.sort(key=lambda doubt: (-doubt[0], doubt[2].start))
            if not text_doubts:
                yield _Candidate(position, 0.0, None, None)
                continue
            top = text_doubts[:MOST_DOUBTS]
            vector = np.sum([worth * vector for worth, vector, _ in top], 0)
            vector /= max(float(np.linalg.norm(vector)), 1e-12)
            yield _Candidate(position, sum(worth for worth, _, _ in top), vector, top[0][2])


def _logit(scores: np.ndarray) -> np.ndarray:
    clipped = np.clip(scores, 1e-3, 1 - 1e-3)
    return np.asarray(np.log(clipped / (1 - clipped)))
