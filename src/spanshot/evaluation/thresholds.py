"""Suggest a score threshold for each label, from gold spans and scored predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spanshot.evaluation.counts import Counts
from spanshot.json_text import JsonValue
from spanshot.types import Span

WORTHWHILE = 0.01
"""Smallest gain in F1 that is worth a suggestion."""


@dataclass(frozen=True)
class Suggestion:
    """A threshold for one label, and the label's F1 before and after. Both are on the data it was chosen on."""

    threshold: float
    f1_before: float
    f1_after: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return all fields for JSON."""
        return {"threshold": self.threshold, "f1_before": self.f1_before, "f1_after": self.f1_after}


def suggest_thresholds(
    sentences: Iterable[tuple[Iterable[Span], Iterable[tuple[Span, float]]]],
) -> dict[str, Suggestion]:
    """Return the threshold with the best F1 for each label where it helps.

    Each sentence is given as its gold spans and its predicted spans with their scores.

    >>> gold, wrong = Span(0, 1, "city"), Span(2, 3, "city")
    >>> suggest_thresholds([([gold], [(gold, 0.9), (wrong, 0.4)])])
    {'city': Suggestion(threshold=0.65, f1_before=0.6666666666666666, f1_after=1.0)}
    """
    marked: dict[str, int] = defaultdict(int)
    predictions: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for gold, predicted in sentences:
        correct = set(gold)
        for span in correct:
            marked[span.label] += 1
        for span, score in predicted:
            predictions[span.label].append((score, span in correct))
    best = {label: _best(scored, marked[label]) for label, scored in predictions.items() if marked[label]}
    return {
        label: suggestion
        for label, suggestion in sorted(best.items())
        if suggestion.f1_after - suggestion.f1_before >= WORTHWHILE
    }


def _best(predictions: Sequence[tuple[float, bool]], marked: int) -> Suggestion:
    """Try a threshold below each distinct score."""
    ordered = sorted(predictions)
    scores = [score for score, _ in ordered]
    correct = sum(is_correct for _, is_correct in ordered)
    before = _f1(correct, len(ordered), marked)
    best = Suggestion(0.0, before, before)
    for at, (score, was_correct) in enumerate(ordered[:-1], start=1):
        correct -= was_correct
        f1 = _f1(correct, len(ordered) - at, marked)
        if scores[at] > score and f1 > best.f1_after:
            best = Suggestion(_between(score, scores[at]), before, f1)
    return best


def _between(low: float, high: float) -> float:
    """Return a number above ``low`` and at most ``high``, with as few decimals as possible.

    >>> _between(0.4, 0.9), _between(0.412, 0.413)
    (0.65, 0.4125)
    """
    for decimals in range(2, 17):
        middle = round((low + high) / 2, decimals)
        if low < middle <= high:
            return middle
    return high


def _f1(correct: int, predicted: int, marked: int) -> float:
    return Counts(tp=correct, fn=marked - correct, fp_span=predicted - correct).f1
