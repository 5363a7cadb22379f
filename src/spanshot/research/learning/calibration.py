"""An O bias for one support set: the one that finds the set's own spans best when they are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spanshot.research.learning.held_out import held_out
from spanshot.research.learning.metric import MetricMethod, MetricTagger
from spanshot.types import SupportSet

STEPS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""How far from the trained bias to look."""


def calibrated(
    method: MetricMethod[Any], support: SupportSet, steps: Sequence[float] = STEPS, weight: float = 4.0
) -> MetricTagger[Any]:
    """The tagger of the support set with a bias of its own.

    A handful of held-out spans says little, so the trained bias counts as much as ``weight`` spans, half of them found:
    the fewer the examples, the less it is moved. Of equals the nearest to the trained one is taken.
    """
    tagger = method.fit(support)
    right = dict.fromkeys(steps, 0.0)
    wrong = dict.fromkeys(steps, 0.0)
    for episode in held_out(support, most=10):
        without = method.fit(episode.support)
        for sentence, scores in zip(episode.query, without.scores(episode.query), strict=True):
            gold = set(sentence.spans)
            for step in steps:
                found = {one.span for one in replace(without, o_bias=without.o_bias + step).decode(scores)}
                right[step] += len(found & gold)
                wrong[step] += len(found ^ gold)

    def smoothed_f1(step: float) -> float:
        distance = abs(step) / max(map(abs, steps))
        tp, errors = right[step] + weight / 2, wrong[step] + weight * (1 + distance) / 2
        return 2 * tp / (2 * tp + errors)

    best = max(steps, key=lambda step: (smoothed_f1(step), -abs(step)))
    return replace(tagger, o_bias=tagger.o_bias + best)
