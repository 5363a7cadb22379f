"""From a trained model and a few examples to entities in raw text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanshot.experiment import checkpoint
from spanshot.methods import Method, Tagger
from spanshot.text import words_of
from spanshot.types import Entity, ScoredSpan, Sentence, SupportSet

Window = tuple[int, int]
"""First word, and one past the last."""


@dataclass(frozen=True)
class Model:
    """A trained method. It can learn any number of label sets; each gives a predictor of its own."""

    method: Method

    def learn(self, examples: SupportSet | Iterable[Sentence]) -> Predictor:
        """What finds the labels that are marked in the examples."""
        support = examples if isinstance(examples, SupportSet) else SupportSet.of(examples)
        return Predictor(self.method.adapt(support), support)


@dataclass(frozen=True)
class Predictor:
    """Finds the entities of one label set in raw text.

    A text of more than ``window`` words is read in windows that share ``overlap`` words. What two windows see
    is taken from the one in which it stands farther from the edge, so nothing is cut off or found twice.
    """

    tagger: Tagger
    support: SupportSet
    window: int = 128
    overlap: int = 32

    def __call__(self, text: str) -> list[Entity]:
        """The entities, in the order of the text; ``text[entity.start:entity.end] == entity.text``."""
        words = words_of(text)
        if not words:
            return []
        windows = windows_over(len(words), self.window, self.overlap)
        found = self.tagger([Sentence(tuple(word.text for word in words[start:end])) for start, end in windows])
        entities = []
        for scored in merge(found, windows):
            start, end = words[scored.span.start].start, words[scored.span.end - 1].end
            entities.append(Entity(text[start:end], scored.span.label, start, end, scored.score))
        return entities


def load(folder: str | Path) -> Model:
    """The model in a checkpoint folder, or the best one of a run folder."""
    return Model(checkpoint.load(folder).method)


def windows_over(words: int, size: int, overlap: int) -> list[Window]:
    """Windows of ``size`` words, each sharing ``overlap`` with the next; the last may share more.

    >>> windows_over(20, 10, 4)
    [(0, 10), (6, 16), (10, 20)]
    """
    if not 0 <= overlap < size:
        raise ValueError(f"windows of {size} words cannot share {overlap}")
    starts = [*range(0, max(words - size, 0), size - overlap), max(words - size, 0)]
    return [(start, min(start + size, words)) for start in starts]


def merge(found: Sequence[Sequence[ScoredSpan]], windows: Sequence[Window]) -> list[ScoredSpan]:
    """The spans found in each window as spans of the whole, each from the window that sees it best.

    Where two windows disagree on what overlaps, the span that stands farther from its window's edge is kept.
    """
    total = windows[-1][1]

    def margin(span: Window, window: Window) -> int:
        """Words between a span and the nearest edge; beyond the text's own ends there is nothing to miss."""
        before = span[0] - window[0] if window[0] else total
        after = window[1] - span[1] if window[1] < total else total
        return min(before, after)

    candidates: list[tuple[int, int, ScoredSpan]] = []
    for number, (own, window) in enumerate(zip(found, windows, strict=True)):
        for scored in own:
            span = scored.span
            bounds = (span.start + window[0], span.end + window[0])
            seeing = [n for n, other in enumerate(windows) if other[0] <= bounds[0] and bounds[1] <= other[1]]
            if number == max(seeing, key=lambda n, bounds=bounds: margin(bounds, windows[n])):  # type: ignore[misc]
                moved = type(span)(*bounds, span.label)
                candidates.append((margin(bounds, window), number, ScoredSpan(moved, scored.score)))
    kept: list[tuple[int, ScoredSpan]] = []
    for _, number, scored in sorted(candidates, key=lambda candidate: -candidate[0]):
        if not any(number != other and scored.span.overlaps(rival.span) for other, rival in kept):
            kept.append((number, scored))
    return sorted((scored for _, scored in kept), key=lambda scored: scored.span)
