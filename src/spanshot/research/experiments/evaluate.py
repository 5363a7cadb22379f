"""A method's score on fixed episodes, and the O bias that serves it best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from spanshot.evaluation.counts import Counts, add_tables, count_by_label
from spanshot.evaluation.report import Report
from spanshot.research.corpora.source import Metric
from spanshot.research.learning.calibration import calibrated
from spanshot.research.learning.finetune import FinetuneSettings, finetuned
from spanshot.research.learning.metric import MetricTagger
from spanshot.research.methods import Method, MetricMethod, SentenceTagger
from spanshot.research.training.pace import Stopwatch
from spanshot.types import Episode, ScoredSpan, Sentence, SupportSet

Key = TypeVar("Key")
Watch = Callable[[int], None]
"""Called with the number of episodes done."""


@dataclass(frozen=True)
class Calibration:
    """What each O bias that was tried gives."""

    reports: Mapping[float, Report]
    metric: Metric

    @property
    def o_bias(self) -> float:
        """The best one; of several, the nearest to none."""
        return max(self.reports, key=lambda bias: (self.score(bias), -abs(bias)))

    def score(self, o_bias: float) -> float:
        """F1 with this bias."""
        return float(getattr(self.reports[o_bias], self.metric))


Learn = Callable[[Any, SupportSet], SentenceTagger]
"""How a method learns a support set."""

LEARNING: dict[str, Learn] = {
    "plain": lambda method, support: method.fit(support),
    "calibrated": lambda method, support: calibrated(method, support),
    "finetuned": lambda method, support: finetuned(method, support, FinetuneSettings()).fit(support),
}


def evaluate(
    method: Method,
    episodes: Sequence[Episode],
    watch: Watch | None = None,
    stopwatch: Stopwatch | None = None,
    learn: Learn = LEARNING["plain"],
) -> Report:
    """Learn each episode's support set and tag its query."""
    stopwatch = stopwatch or Stopwatch()
    tables = []
    for number, episode in enumerate(episodes, start=1):
        with stopwatch.learning():
            tagger = learn(method, episode.support)
        with stopwatch.tagging(len(episode.query)):
            found = tagger(episode.query)
        tables.append(_counts(episode.query, found))
        if watch:
            watch(number)
    return Report.of(tables)


def evaluate_biases(
    method: MetricMethod[Any],
    episodes: Sequence[Episode],
    o_biases: Sequence[float],
    metric: Metric,
    watch: Watch | None = None,
) -> Calibration:
    """As :func:`evaluate`, for several O biases at once."""
    variants = {bias: partial(_with_bias, o_bias=bias) for bias in o_biases}
    return Calibration(evaluate_variants(method, episodes, variants, watch), metric)


def evaluate_variants(
    method: MetricMethod[Any],
    episodes: Sequence[Episode],
    variants: Mapping[Key, Callable[[MetricTagger[Any]], MetricTagger[Any]]],
    watch: Watch | None = None,
    stopwatch: Stopwatch | None = None,
    learn: Learn = LEARNING["plain"],
) -> dict[Key, Report]:
    """As :func:`evaluate`, for several ways to decode what a tagger finds: the sentences are read only once.

    A variant is made of each episode's tagger. Only the first of them is timed.
    """
    stopwatch = stopwatch or Stopwatch()
    tables: dict[Key, list[dict[str, Counts]]] = {key: [] for key in variants}
    for number, episode in enumerate(episodes, start=1):
        with stopwatch.learning():
            tagger = learn(method, episode.support)
        assert isinstance(tagger, MetricTagger)
        with stopwatch.tagging(len(episode.query)):
            scored = list(tagger.scores(episode.query))
        for place, (key, variant) in enumerate(variants.items()):
            other = variant(tagger)
            with nullcontext() if place else stopwatch.tagging(0):
                found = [other.decode(scores) for scores in scored]
            tables[key].append(_counts(episode.query, found))
        if watch:
            watch(number)
    return {key: Report.of(own) for key, own in tables.items()}


def _with_bias(tagger: MetricTagger[Any], o_bias: float) -> MetricTagger[Any]:
    return replace(tagger, o_bias=o_bias)


def _counts(gold: Sequence[Sentence], found: Sequence[Sequence[ScoredSpan]]) -> dict[str, Counts]:
    return add_tables(
        count_by_label(sentence.spans, (scored.span for scored in own))
        for sentence, own in zip(gold, found, strict=True)
    )
