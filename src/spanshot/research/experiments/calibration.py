"""Table and figure: whether scores are probabilities.

Scores are collected on users' domains. The scores as returned are measured as they are, and with a map that is fitted
on the other domains: a logistic regression on the logit of the score and the log of the label's examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanshot.formats.marks import Mark
from spanshot.heads.solver import Problem, sigmoid, solve
from spanshot.research.experiments.ledger import Ledger, Row, markdown
from spanshot.research.experiments.raw_text import TextEpisode, read_text_episodes
from spanshot.research.experiments.systems import System
from spanshot.research.experiments.user_like import EpisodeFile

KEYS = ("system", "shots", "domain", "episode")
BINS = 10
LOWEST = 0.05
"""Entities with a lower score are left out."""
Array = npt.NDArray[np.float64]


def measure(ledger: Ledger, files: Iterable[EpisodeFile], system: System, watch: Callable[[str], None]) -> None:
    """Record score, correctness and examples of the label of each entity found; skip episodes in the ledger.

    ``system`` must return entities of low score too.
    """
    for file in files:
        for number, episode in enumerate(read_text_episodes(file.path)):
            row: Row = {"system": system.name, "shots": file.shots, "domain": file.domain, "episode": number}
            row["identity"] = system.identity
            if not ledger.has(row, "identity"):
                guesses = _guesses(system, episode)
                scores, right, examples = (list(own) for own in zip(*guesses, strict=True)) if guesses else ([], [], [])
                ledger.add({**row, "scores": scores, "right": right, "examples": examples})
                watch(f"{file.domain}, {file.shots}-shot, episode {number}: {len(guesses)} entities")


def _guesses(system: System, episode: TextEpisode) -> list[tuple[float, int, int]]:
    counts: dict[str, int] = {}
    for example in episode.support:
        for mark in example.marks:
            counts[mark.label] = counts.get(mark.label, 0) + 1
    tag = system.learn(episode.labels, episode.support)
    guesses = []
    for example, entities in zip(episode.query, tag([e.text for e in episode.query]), strict=True):
        for entity in entities:
            if entity.score >= LOWEST:
                right = Mark(entity.start, entity.end, entity.label) in example.marks
                guesses.append((round(entity.score, 4), int(right), counts[entity.label]))
    return guesses


@dataclass(frozen=True, slots=True)
class Guesses:
    """Scores of entities, whether they are right, and how many examples their labels have."""

    scores: Array
    right: Array
    examples: Array

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Guesses:
        """Join the rows of a ledger."""
        rows = list(rows)
        names = ("scores", "right", "examples")
        return cls(*(np.concatenate([np.array(row[name], float) for row in rows]) for name in names))

    @property
    def features(self) -> Array:
        """Logit of the score, log of the examples, and one. [guesses, 3]"""
        score = self.scores.clip(1e-4, 1 - 1e-4)
        return np.stack([np.log(score / (1 - score)), np.log(self.examples.clip(1)), np.ones(len(score))], 1)

    def fit_map(self) -> Array:
        """Fit a logistic regression of correctness to the features. [3]"""
        rows, theta = self.features, np.zeros((1, 3))
        # The solver's prior score stands for the examples, its bias for the one.
        problem = Problem(
            rows[:, :1],
            rows[:, 1:2],
            self.right[:, None] > 0.5,
            np.ones((len(rows), 1)),
            np.full_like(theta, 1e-3),
            theta,
        )
        return np.asarray(solve(problem)[0])


@dataclass(frozen=True, slots=True)
class Reliability:
    """Accuracy by bins of the score."""

    bins: tuple[tuple[float, float, int], ...]
    """Mean score, share of right entities and number of entities of each bin that holds any."""

    @classmethod
    def of(cls, scores: Array, right: Array) -> Reliability:
        """Put the scores into bins of equal width.

        >>> Reliability.of(np.array([0.25, 0.25]), np.array([1.0, 0.0])).error
        0.25
        """
        place = np.minimum((scores * BINS).astype(int), BINS - 1)
        kept = [place == number for number in range(BINS) if (place == number).any()]
        return cls(tuple((float(scores[own].mean()), float(right[own].mean()), int(own.sum())) for own in kept))

    @property
    def error(self) -> float:
        """Expected calibration error: the mean distance of score and accuracy, weighted by the size of the bins."""
        total = sum(size for _, _, size in self.bins)
        return sum(size * abs(score - accuracy) for score, accuracy, size in self.bins) / max(1, total)


def reliabilities(rows: Iterable[Row], lowest: float) -> dict[tuple[int, str], Reliability]:
    """Return the reliability by number of examples per label: of scores as they are, and mapped by other domains.

    ``lowest`` is the score below which entities are left out.
    """
    rows = list(rows)
    shots = sorted({int(str(row["shots"])) for row in rows})
    parts: dict[tuple[int, str], list[tuple[Array, Array]]] = {}
    for domain in sorted({str(row["domain"]) for row in rows}):
        theta = Guesses.of(row for row in rows if row["domain"] != domain).fit_map()
        for k in shots:
            own = Guesses.of(row for row in rows if row["domain"] == domain and row["shots"] == k)
            mapped: Array = np.asarray(sigmoid(own.features @ theta), np.float64)
            parts.setdefault((k, "as returned"), []).append((own.scores, own.right))
            parts.setdefault((k, "map of other domains"), []).append((mapped, own.right))
    results = {}
    for key, both in parts.items():
        scores, right = (np.concatenate(own) for own in zip(*both, strict=True))
        results[key] = Reliability.of(scores[scores >= lowest], right[scores >= lowest])
    return results


def tables(rows: Iterable[Row], lowest: float = LOWEST) -> str:
    """Return the expected calibration errors, and accuracy by bins."""
    found = reliabilities(rows, lowest)
    lines = [
        [str(k), kind, f"{own.error:.3f}", " ".join(f"{s:.2f}→{a:.2f} ({n})" for s, a, n in own.bins)]
        for (k, kind), own in sorted(found.items())
    ]
    return markdown(["examples per label", "scores", "calibration error", "mean score → accuracy (entities)"], lines)
