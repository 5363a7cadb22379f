"""Ways to resolve conflicts between spans, compared on cached scores of episodes with nested entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from spanshot.decode.conflicts import BeamSearch, BeamSoftNMS, KeepAll, Resolver, SoftNMS
from spanshot.decode.spans import SpanDecoder
from spanshot.evaluation.counts import Counts, add_tables, count, count_by_label
from spanshot.evaluation.report import Report
from spanshot.json_text import Fields, JsonObject, JsonValue
from spanshot.research import checkpoint
from spanshot.research.corpora.episode_files import read_episodes
from spanshot.research.experiments.evaluate import evaluate_biases
from spanshot.research.experiments.reproduce.jobs import Count, read_measurement
from spanshot.research.methods import MetricMethod
from spanshot.research.training.settings import O_BIASES
from spanshot.types import Episode, ScoredSpan, Span

BEAM = 5
TUNED: dict[str, Callable[[float, float, float], Resolver]] = {
    "bsnms": lambda overlap, decay, threshold: BeamSoftNMS(BEAM, overlap, decay, threshold),
    "soft_nms": SoftNMS,
}
"""Resolvers with settings k (overlap), u (decay) and δ (threshold), which are tuned on dev."""
FIXED: dict[str, Resolver] = {"beam": BeamSearch(BEAM), "none": KeepAll()}

CachedSentence = tuple[tuple[Span, ...], list[ScoredSpan]]
"""The gold spans of a sentence, and its candidates: all spans that are more probable than O."""
CachedEpisode = list[CachedSentence]


@dataclass(frozen=True)
class PostprocessingGrid:
    """Tunes k, u and δ on dev episodes, then evaluates all resolvers on test episodes."""

    name: str
    dev: Path
    """Episodes to tune k, u and δ on."""
    test: Path
    """Episodes with nested entities."""
    flat: Path
    """Episodes without nested entities, for the curve over the share of nested episodes."""
    tune_on: Path
    """Dev episodes to tune the O bias on."""
    values: tuple[float, ...]
    """Values to try for each of k, u and δ."""

    def describe(self) -> JsonObject:
        """Return all fields."""
        paths = {name: str(getattr(self, name)) for name in ("dev", "test", "flat", "tune_on")}
        return {**paths, "values": list(self.values)}

    def measure(self, folder: Path, count: Count) -> JsonObject:
        """Tune and evaluate."""
        method = checkpoint.load(folder).method
        assert isinstance(method, MetricMethod)
        method.o_bias.fill_(evaluate_biases(method, read_episodes(self.tune_on), O_BIASES, "micro_f1").o_bias)
        sets = {
            name: read_episodes(path) for name, path in (("dev", self.dev), ("test", self.test), ("flat", self.flat))
        }
        total = sum(map(len, sets.values())) + len(TUNED)
        done = 0
        cached: dict[str, list[CachedEpisode]] = {}
        for name, episodes in sets.items():
            cached[name] = []
            for episode in candidates(method, episodes):
                cached[name].append(episode)
                done += 1
                count(done, total)
        resolvers = dict(FIXED)
        tuned: dict[str, JsonValue] = {}
        for name, build in TUNED.items():
            (overlap, decay, threshold), f1 = best_settings(build, cached["dev"], self.values)
            resolvers[name] = build(overlap, decay, threshold)
            tuned[name] = {"overlap": overlap, "decay": decay, "threshold": threshold, "dev_f1": f1}
            done += 1
            count(done, total)
        reports: dict[str, JsonValue] = {
            name: resolved(cached["test"], resolver).to_dict(counts_of_episodes=True)
            for name, resolver in resolvers.items()
        }
        flat = resolved(cached["flat"], resolvers["bsnms"]).to_dict(counts_of_episodes=True)
        return {"o_bias": method.o_bias.item(), "tuned": tuned, "test": reports, "flat": flat}

    def read(self, folder: Path) -> GridOutcome | None:
        """Return the recorded outcome, if there is one."""
        record = read_measurement(folder, self)
        if record is None:
            return None
        fields = Fields.of(record)
        test, tuned = fields.object("test"), fields.object("tuned")
        return GridOutcome(
            {name: Report.from_dict(test.value(name)) for name in test.record},
            Report.from_dict(fields.value("flat")),
            {
                name: {key: tuned.object(name).number(key) for key in ("overlap", "decay", "threshold", "dev_f1")}
                for name in tuned.record
            },
        )


@dataclass(frozen=True)
class GridOutcome:
    """The results of `PostprocessingGrid`."""

    test: dict[str, Report]
    """Report of each resolver on the nested episodes."""
    flat: Report
    """Report of the tuned Beam Soft-NMS on the episodes without nested entities."""
    tuned: dict[str, dict[str, float]]
    """Tuned settings and dev F1 of each resolver that has settings."""


def candidates(method: MetricMethod, episodes: Iterable[Episode]) -> Iterator[CachedEpisode]:
    """Yield the candidates of each episode: encoded and scored once, for any number of resolvers."""
    for episode in episodes:
        tagger = replace(method.fit(episode.support), decoder=SpanDecoder(KeepAll()))
        scored = dict(tagger.scores(episode.query))
        yield [(sentence.spans, tagger.decode(scored[at])) for at, sentence in enumerate(episode.query)]


def best_settings(
    build: Callable[[float, float, float], Resolver], dev: Sequence[CachedEpisode], values: Sequence[float]
) -> tuple[tuple[float, float, float], float]:
    """Return the settings with the best micro F1 on dev, and that F1; among equals, the first of the grid."""
    best, best_f1 = (values[0], values[0], values[0]), -1.0
    for overlap, decay, threshold in product(values, repeat=3):
        resolver = build(overlap, decay, threshold)
        counts = (
            count(gold, (scored.span for scored in resolver(candidates)))
            for episode in dev
            for gold, candidates in episode
        )
        f1 = sum(counts, Counts()).f1
        if f1 > best_f1:
            best, best_f1 = (overlap, decay, threshold), f1
    return best, best_f1


def resolved(episodes: Sequence[CachedEpisode], resolver: Resolver) -> Report:
    """Return the report of a resolver on cached episodes."""
    return Report.of(
        add_tables(
            count_by_label(gold, (scored.span for scored in resolver(candidates))) for gold, candidates in episode
        )
        for episode in episodes
    )
