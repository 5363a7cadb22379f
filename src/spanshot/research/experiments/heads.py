"""Table: heads on the same span vectors. Logistic regression, ridge, prototypes, nearest neighbour; ablations of rows.

No head uses text matches. Each is measured at the threshold with its best mean F1 over domains and numbers of
examples, so heads whose scores have no common scale can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from spanshot.decode.scores import Bounds
from spanshot.engine.names import readable
from spanshot.errors import ConfigError
from spanshot.formats.examples import to_sentences
from spanshot.heads.fit import choose_rows, fit
from spanshot.heads.linear import Bools, Floats, Prior
from spanshot.heads.settings import HeadSettings
from spanshot.learner import LinearLearner
from spanshot.model import embedded_model
from spanshot.research.experiments.growth import f1_of
from spanshot.research.experiments.ledger import markdown
from spanshot.research.experiments.raw_text import TextEpisode, read_text_episodes
from spanshot.research.experiments.user_like import EpisodeFile
from spanshot.research.nn.linear_episodes import candidates
from spanshot.research.nn.spans import bounds_up_to
from spanshot.types import Sentence

LONGEST = 12
MAX_DECODED = 80
"""Only the spans with the highest scores are decoded: at most this many per sentence."""


class SpanSource(Protocol):
    """The part of a model that encodes spans and label names."""

    def prior(self, names: Sequence[str | None]) -> Prior:
        """Return the prior of each label."""
        ...

    def span_vectors(self, sentences: Sequence[Sentence], bounds: Sequence[Bounds]) -> list[Floats]:
        """Return the vectors of the spans at ``bounds`` of each sentence."""
        ...

    def head_settings(self) -> HeadSettings:
        """Return the trained settings of the head."""
        ...


class DefaultSource:
    """The vectors of the packaged model."""

    def __init__(self) -> None:
        learner = embedded_model().method
        if not isinstance(learner, LinearLearner):
            raise ConfigError("the packaged model has no linear head")
        self._encoder, self._settings = learner.encoder, learner.settings

    def prior(self, names: Sequence[str | None]) -> Prior:
        """Return the prior of each label."""
        return self._encoder.encode_names([name or "" for name in names])

    def span_vectors(self, sentences: Sequence[Sentence], bounds: Sequence[Bounds]) -> list[Floats]:
        """Return the vectors of the spans at ``bounds`` of each sentence."""
        encoded = dict(self._encoder.encode([sentence.words for sentence in sentences], bounds))
        return [encoded[number].vectors for number in range(len(sentences))]

    def head_settings(self) -> HeadSettings:
        """Return the trained settings of the head."""
        return self._settings.head


@dataclass(frozen=True, slots=True)
class Vectors:
    """Spans of one sentence."""

    bounds: Bounds  # [spans, 2]
    vectors: Floats  # [spans, size]
    marked: Bools  # [spans, labels]
    gold: frozenset[tuple[int, int, int]]
    """Start, end and label of the marked spans."""


@dataclass(frozen=True, slots=True)
class EncodedEpisode:
    """The vectors of an episode and the priors of its labels."""

    support: tuple[Vectors, ...]
    query: tuple[Vectors, ...]
    prior: Prior
    nameless: Prior


Score = Callable[[Floats], Floats]
"""Scores spans for labels: [spans, size] -> [spans, labels]."""
Head = Callable[[EncodedEpisode], Score]
"""Fits a head to the support."""


def encode(source: SpanSource, episode: TextEpisode) -> EncodedEpisode:
    """Encode all sentences and label names of an episode."""
    column = {label: number for number, label in enumerate(episode.labels)}
    parts = []
    for part, examples in enumerate((episode.support, episode.query)):
        sentences = to_sentences([example.record() for example in examples])
        bounds = [bounds_up_to(len(s), LONGEST) if part else candidates(s, LONGEST) for s in sentences]
        vectors = source.span_vectors(sentences, bounds)
        parts.append(tuple(_vectors(s, b, v, column) for s, b, v in zip(sentences, bounds, vectors, strict=True)))
    names = source.prior([readable(label) for label in episode.labels])
    return EncodedEpisode(parts[0], parts[1], names, source.prior([None] * len(episode.labels)))


def _vectors(sentence: Sentence, bounds: Bounds, vectors: Floats, column: dict[str, int]) -> Vectors:
    place = {(int(a), int(b)): number for number, (a, b) in enumerate(bounds)}
    marked = np.zeros((len(bounds), len(column)), bool)
    gold = frozenset((span.start, span.end, column[span.label]) for span in sentence.spans)
    for start, end, label in gold:
        if (start, end) in place:
            marked[place[start, end], label] = True
    return Vectors(bounds, vectors, marked, gold)


def logistic(
    episode: EncodedEpisode, settings: HeadSettings, hard: int = 32, spread: int = 16, *, named: bool = True
) -> Score:
    """Fit the head of this package."""
    prior = episode.prior if named else episode.nameless
    rows = [
        choose_rows(sentence.vectors, sentence.marked, prior, hard=hard, spread=spread) for sentence in episode.support
    ]
    return fit(rows, prior, settings, tolerance=1e-4).scores


def ridge(episode: EncodedEpisode, penalty: float, background: float, prior_scale: float) -> Score:
    """Fit a ridge regression to targets 0 and 1 that shrinks towards the scaled vectors of the names.

    All unmarked spans together have ``background`` times the weight of the marked ones.
    """
    vectors, marked = _stacked(episode)
    labels, size = episode.prior.weights.shape
    positive = marked.any(1)
    weights = np.where(positive, 1.0, background * positive.sum() / max(1, (~positive).sum()))
    features = np.concatenate([vectors, np.ones((len(vectors), 1), np.float32)], 1).astype(np.float64)
    centre = np.concatenate([prior_scale * episode.prior.weights, np.zeros((labels, 1))], 1)
    gram = (features * weights[:, None]).T @ features
    gram[np.diag_indices(size)] += penalty
    gram[size, size] += 1e-6
    target = (marked - features @ centre.T) * weights[:, None]
    solution = (centre + np.linalg.solve(gram, features.T @ target).T).astype(np.float32)
    return lambda query: np.asarray(query @ solution[:, :-1].T + solution[:, -1])


def prototypes(episode: EncodedEpisode) -> Score:
    """Score by the mean of a label's spans, against the nearest unmarked span."""
    vectors, marked = _stacked(episode)
    means = np.stack([vectors[column].mean(0) if column.any() else vectors[0] * 0 for column in marked.T])
    means /= np.linalg.norm(means, axis=1, keepdims=True).clip(1e-6)
    unmarked = vectors[~marked.any(1)]
    return lambda query: np.asarray(query @ means.T - (query @ unmarked.T).max(1, keepdims=True))


def nearest(episode: EncodedEpisode) -> Score:
    """Score by a label's nearest span, against the nearest unmarked span."""
    vectors, marked = _stacked(episode)
    unmarked = vectors[~marked.any(1)]
    by_label = [vectors[column] if column.any() else vectors[:1] * 0 for column in marked.T]

    def score(query: Floats) -> Floats:
        best = np.stack([(query @ label_vectors.T).max(1) for label_vectors in by_label], 1)
        return np.asarray(best - (query @ unmarked.T).max(1, keepdims=True))

    return score


def _stacked(episode: EncodedEpisode) -> tuple[Floats, Bools]:
    vectors = np.concatenate([sentence.vectors for sentence in episode.support])
    return vectors, np.concatenate([sentence.marked for sentence in episode.support])


def heads(settings: HeadSettings) -> dict[str, Head]:
    """Return the heads to compare."""
    compared: dict[str, Head] = {
        "logistic (default)": partial(logistic, settings=settings),
        "logistic, without names": partial(logistic, settings=settings, named=False),
        "logistic, 16 + 8 rows per sentence": partial(logistic, settings=settings, hard=16, spread=8),
        "logistic, 64 + 32 rows": partial(logistic, settings=settings, hard=64, spread=32),
        "logistic, all rows": partial(logistic, settings=settings, hard=10**6, spread=0),
        "prototypes": prototypes,
        "nearest neighbour": nearest,
    }
    for scale in (0.1, 0.3, 3.0, 10.0):
        changed = replace(settings, background=settings.background * scale)
        compared[f"logistic, O weight {changed.background:.0f}"] = partial(logistic, settings=changed)
    return compared


def ridge_grid() -> dict[str, Head]:
    """Return ridge heads over a wide range of penalties and O weights, with and without names."""
    return {
        f"ridge, penalty {penalty:g}, O weight {background:g}, names x {scale:g}": partial(
            ridge, penalty=penalty, background=background, prior_scale=scale
        )
        for penalty in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
        for background in (1.0, 3.0, 10.0, 30.0, 100.0)
        for scale in (0.0, 0.05)
    }


@dataclass(slots=True)
class Tally:
    """Scores of decoded spans, whether they are right, and the number of gold spans."""

    scores: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    gold: int = 0

    def f1(self, thresholds: np.ndarray) -> np.ndarray:
        """Return F1 in percent at each threshold."""
        scores, right = np.array(self.scores), np.array(self.right, bool)
        accepted = scores[None] >= thresholds[:, None]  # [thresholds, spans]
        tp = (accepted & right).sum(1)
        return f1_of(np.stack([tp, accepted.sum(1) - tp, self.gold - tp], 1))


def decode(scores: Floats, bounds: Bounds) -> Iterator[tuple[float, int, int, int]]:
    """Yield non-overlapping spans by falling score: score, start, end, label.

    A higher threshold only cuts off the tail.
    """
    best, label = scores.max(1), scores.argmax(1)
    used_words: set[int] = set()
    for place in np.argsort(-best, kind="stable")[:MAX_DECODED]:
        start, end = (int(at) for at in bounds[place])
        if used_words.isdisjoint(range(start, end)):
            used_words.update(range(start, end))
            yield float(best[place]), start, end, int(label[place])


def measure(
    source: SpanSource,
    files: Iterable[EpisodeFile],
    compared: dict[str, Head],
    first: int,
    watch: Callable[[str], None],
) -> dict[str, dict[tuple[str, int], Tally]]:
    """Return the tallies of each head by domain and number of examples, over the first episodes of each file."""
    tallies: dict[str, dict[tuple[str, int], Tally]] = {name: {} for name in compared}
    for file in files:
        for episode in _first_episodes(file.path, first):
            encoded = encode(source, episode)
            for name, head in compared.items():
                score = head(encoded)
                tally = tallies[name].setdefault((file.domain, file.shots), Tally())
                for sentence in encoded.query:
                    tally.gold += len(sentence.gold)
                    for value, *span in decode(score(sentence.vectors), sentence.bounds):
                        tally.scores.append(value)
                        tally.right.append(tuple(span) in sentence.gold)
        watch(f"{file.domain}, {file.shots}-shot")
    return tallies


def _first_episodes(path: Path, first: int) -> list[TextEpisode]:
    episodes = read_text_episodes(path)
    return episodes[:first] if first else episodes


def best_figures(tallies: dict[tuple[str, int], Tally]) -> dict[int, float]:
    """Return mean F1 over domains by number of examples, at the single threshold with the best mean over all."""
    all_scores = np.concatenate([tally.scores for tally in tallies.values()])
    thresholds = np.unique(np.quantile(all_scores, np.linspace(0, 1, 400)))
    f1 = {key: tally.f1(thresholds) for key, tally in tallies.items()}
    shots = sorted({k for _, k in f1})
    means = {k: np.mean([curve for (_, n), curve in f1.items() if n == k], 0) for k in shots}
    place = int(np.argmax(np.mean(list(means.values()), 0)))
    return {k: float(curve[place]) for k, curve in means.items()}


def tables(results: dict[str, dict[tuple[str, int], Tally]]) -> str:
    """Return a table of all heads, with only the best of the ridge settings."""
    figures = {name: best_figures(tallies) for name, tallies in results.items()}
    ridges = sorted((name for name in figures if name.startswith("ridge")), key=lambda n: -sum(figures[n].values()))
    chosen = [name for name in figures if name not in ridges[1:]]
    shots = sorted({k for by_shots in figures.values() for k in by_shots})
    lines = [[name, *(f"{figures[name][k]:.1f}" for k in shots)] for name in chosen]
    return markdown(["head", *(f"{k} per label" for k in shots)], lines)
