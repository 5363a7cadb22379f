"""A method's score on fixed episodes, and the O bias that serves it best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from spanshot.data.sources import Metric
from spanshot.experiment.scoring import Counts, Report, add_tables, count_by_label
from spanshot.methods import Method, MetricMethod
from spanshot.types import Episode, ScoredSpan, Sentence

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


def evaluate(method: Method, episodes: Sequence[Episode], watch: Watch | None = None) -> Report:
    """Learn each episode's support set and tag its query."""
    tables = []
    for number, episode in enumerate(episodes, start=1):
        tables.append(_counts(episode.query, method.adapt(episode.support)(episode.query)))
        if watch:
            watch(number)
    return Report.of(tables)


def evaluate_biases(
    method: MetricMethod[object],
    episodes: Sequence[Episode],
    o_biases: Sequence[float],
    metric: Metric,
    watch: Watch | None = None,
) -> Calibration:
    """As :func:`evaluate`, for several O biases at once: the sentences are read only once."""
    tables: dict[float, list[dict[str, Counts]]] = {bias: [] for bias in o_biases}
    for number, episode in enumerate(episodes, start=1):
        tagger = method.adapt(episode.support)
        scored = list(tagger.scores(episode.query))
        for bias, own in tables.items():
            biased = replace(tagger, o_bias=bias)
            own.append(_counts(episode.query, [biased.decode(scores) for scores in scored]))
        if watch:
            watch(number)
    return Calibration({bias: Report.of(own) for bias, own in tables.items()}, metric)


def _counts(gold: Sequence[Sentence], found: Sequence[Sequence[ScoredSpan]]) -> dict[str, Counts]:
    return add_tables(
        count_by_label(sentence.spans, (scored.span for scored in own))
        for sentence, own in zip(gold, found, strict=True)
    )
