"""Score a method on fixed episodes, and find the O bias with the highest F1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from spanshot.evaluation.counts import Counts, add_tables, count_by_label
from spanshot.evaluation.report import Metric, Report
from spanshot.research.learning.metric import MetricTagger
from spanshot.research.methods import Method, MetricMethod, SentenceTagger
from spanshot.research.training.pace import Stopwatch
from spanshot.types import Episode, ScoredSpan, Sentence, SupportSet

Key = TypeVar("Key")
Watch = Callable[[int], None]
"""Called with the number of episodes evaluated so far."""
Learn = Callable[[Method, SupportSet], SentenceTagger]
"""Learns a support set with a method."""


def fit(method: Method, support: SupportSet) -> SentenceTagger:
    """Learn the support set without gradients."""
    return method.fit(support)


def fit_finetuned(method: Method, support: SupportSet) -> SentenceTagger:
    """Fine-tune a copy of the method on the support set, then learn it."""
    return (method.finetuned(support) or method).fit(support)


@dataclass(frozen=True)
class Calibration:
    """The reports for all O biases tried."""

    reports: Mapping[float, Report]
    metric: Metric

    @property
    def o_bias(self) -> float:
        """The bias with the highest F1; among equals, the one closest to 0."""
        return max(self.reports, key=lambda bias: (self.score(bias), -abs(bias)))

    def score(self, o_bias: float) -> float:
        """Return the F1 with this bias."""
        return self.reports[o_bias].f1(self.metric)


def evaluate(
    method: Method,
    episodes: Sequence[Episode],
    watch: Watch | None = None,
    stopwatch: Stopwatch | None = None,
    learn: Learn = fit,
) -> Report:
    """Learn the support set of each episode and tag its query."""
    stopwatch = stopwatch or Stopwatch()
    tables = []
    for number, episode in enumerate(episodes, start=1):
        with stopwatch.learning():
            tagger = learn(method, episode.support)
        with stopwatch.tagging(len(episode.query)):
            predicted = tagger(episode.query)
        tables.append(_counts(episode.query, predicted))
        if watch:
            watch(number)
    return Report.of(tables)


def evaluate_biases(
    method: MetricMethod,
    episodes: Sequence[Episode],
    o_biases: Sequence[float],
    metric: Metric,
    watch: Watch | None = None,
) -> Calibration:
    """As `evaluate`, for several O biases at once."""
    variants = {bias: partial(_with_bias, o_bias=bias) for bias in o_biases}
    return Calibration(evaluate_variants(method, episodes, variants, watch), metric)


def evaluate_variants(
    method: MetricMethod,
    episodes: Sequence[Episode],
    variants: Mapping[Key, Callable[[MetricTagger], MetricTagger]],
    watch: Watch | None = None,
    stopwatch: Stopwatch | None = None,
    learn: Learn = fit,
) -> dict[Key, Report]:
    """As `evaluate`, for several ways of decoding the same scores. Sentences are encoded only once.

    A variant maps the tagger of an episode to another one. Only the first variant is timed.
    """
    stopwatch = stopwatch or Stopwatch()
    tables: dict[Key, list[dict[str, Counts]]] = {key: [] for key in variants}
    for number, episode in enumerate(episodes, start=1):
        with stopwatch.learning():
            tagger = learn(method, episode.support)
        assert isinstance(tagger, MetricTagger)
        with stopwatch.tagging(len(episode.query)):
            scored = dict(tagger.scores(episode.query))
        for position, (key, variant) in enumerate(variants.items()):
            changed = variant(tagger)
            with ExitStack() as timing:
                if not position:
                    timing.enter_context(stopwatch.tagging(0))
                predicted = [changed.decode(scored[at]) for at in range(len(episode.query))]
            tables[key].append(_counts(episode.query, predicted))
        if watch:
            watch(number)
    return {key: Report.of(table) for key, table in tables.items()}


def merged(reports: Sequence[Report]) -> Report:
    """Merge the reports of processes that evaluated every n-th episode each, in the order of the episodes."""
    longest = max(len(report.episodes) for report in reports)
    episodes = [
        report.episodes[number] for number in range(longest) for report in reports if number < len(report.episodes)
    ]
    confusions = sum((Counter(report.confusions) for report in reports), Counter[tuple[str, str]]())
    return Report(tuple(episodes), add_tables(report.labels for report in reports), confusions)


def _with_bias(tagger: MetricTagger, o_bias: float) -> MetricTagger:
    return replace(tagger, o_bias=o_bias)


def _counts(gold: Iterable[Sentence], predicted: Iterable[Sequence[ScoredSpan]]) -> dict[str, Counts]:
    return add_tables(
        count_by_label(sentence.spans, (scored.span for scored in spans))
        for sentence, spans in zip(gold, predicted, strict=True)
    )
