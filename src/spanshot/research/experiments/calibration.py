"""Table and figure: calibration of scores on users' domains.

Measures the scores as returned, and after a map that is fitted on the other domains: a logistic regression on the logit
of the score and the log of the label's examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanshot.heads.fit import Problem, solve
from spanshot.heads.linear import sigmoid
from spanshot.research.experiments.ledger import Ledger, Row, markdown
from spanshot.research.experiments.raw_text import Mark, TextEpisode, read_text_episodes
from spanshot.research.experiments.systems import BOTH, NAMES, System
from spanshot.research.experiments.user_like import EpisodeFile, learn

KEYS = ("system", "mode", "shots", "domain", "episode")
BINS = 10
LOWEST = 0.02
"""Lowest score that is recorded."""
Array = npt.NDArray[np.float64]


def measure(
    ledger: Ledger, files: Iterable[EpisodeFile], system: System, modes: Sequence[str], watch: Callable[[str], None]
) -> None:
    """Record each entity's score, its correctness and the examples of its label; skip episodes in the ledger.

    ``system`` must return entities with low scores, too.
    """
    for file in files:
        for number, episode in enumerate(read_text_episodes(file.path)):
            for mode in modes:
                row: Row = {"system": system.name, "mode": mode, "shots": file.shots, "domain": file.domain}
                row |= {"episode": number, "identity": system.identity}
                if not ledger.has(row, "identity"):
                    ledger.add({**row, **_guesses(system, mode, episode)})
                    watch(f"{file.domain}, {file.shots}-shot, {mode}, episode {number}")


def _guesses(system: System, mode: str, episode: TextEpisode) -> Row:
    counts = Counter[str]()
    if mode != NAMES:
        counts.update(mark.label for example in episode.support for mark in example.marks)
    scores: list[float] = []
    right, examples, texts = list[int](), list[int](), list[int]()
    tagged = learn(system, mode, episode)([example.text for example in episode.query])
    for number, (example, entities) in enumerate(zip(episode.query, tagged, strict=True)):
        for entity in entities:
            scores.append(round(entity.score, 4))
            right.append(int(Mark(entity.start, entity.end, entity.label) in example.marks))
            examples.append(counts[entity.label])
            texts.append(number)
    empty = [number for number, example in enumerate(episode.query) if not example.marks]
    gold = sum(len(example.marks) for example in episode.query)
    return {"scores": scores, "right": right, "examples": examples, "texts": texts, "empty": empty, "gold": gold}


@dataclass(frozen=True, slots=True)
class Guesses:
    """Scores of entities, their correctness, and the number of examples of their labels."""

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
        right, weights = self.right[:, None] > 0.5, np.ones((len(rows), 1))
        problem = Problem(rows, right, weights, np.full_like(theta, 1e-3), theta, theta)
        return np.asarray(solve(problem)[0])


@dataclass(frozen=True, slots=True)
class Reliability:
    """Accuracy by score bin."""

    bins: tuple[tuple[float, float, int], ...]
    """Mean score, accuracy and size of each bin that is not empty."""

    @classmethod
    def of(cls, scores: Array, right: Array) -> Reliability:
        """Put the scores into bins of equal width.

        >>> Reliability.of(np.array([0.25, 0.25]), np.array([1.0, 0.0])).error
        0.25
        """
        bin_of = np.minimum((scores * BINS).astype(int), BINS - 1)
        masks = [bin_of == number for number in range(BINS) if (bin_of == number).any()]
        return cls(tuple((float(scores[mask].mean()), float(right[mask].mean()), int(mask.sum())) for mask in masks))

    @property
    def error(self) -> float:
        """Expected calibration error: the mean distance of score and accuracy, weighted by the size of the bins."""
        total = sum(size for _, _, size in self.bins)
        return sum(size * abs(score - accuracy) for score, accuracy, size in self.bins) / max(1, total)


def reliabilities(rows: Iterable[Row], lowest: float) -> dict[tuple[int, str], Reliability]:
    """Return the reliability by number of examples per label, of scores as returned and as mapped by other domains.

    Entities with a score below ``lowest`` are left out, and so are rows learned from names or examples only.
    """
    rows = [row for row in rows if row["mode"] == BOTH]
    shots = sorted({int(str(row["shots"])) for row in rows})
    parts: dict[tuple[int, str], list[tuple[Array, Array]]] = {}
    for domain in sorted({str(row["domain"]) for row in rows}):
        theta = Guesses.of(row for row in rows if row["domain"] != domain).fit_map()
        for k in shots:
            guesses = Guesses.of(row for row in rows if row["domain"] == domain and row["shots"] == k)
            mapped: Array = np.asarray(sigmoid(guesses.features @ theta), np.float64)
            parts.setdefault((k, "as returned"), []).append((guesses.scores, guesses.right))
            parts.setdefault((k, "map of other domains"), []).append((mapped, guesses.right))
    results = {}
    for key, pairs in parts.items():
        scores, right = (np.concatenate(guesses) for guesses in zip(*pairs, strict=True))
        results[key] = Reliability.of(scores[scores >= lowest], right[scores >= lowest])
    return results


def tables(rows: Iterable[Row], lowest: float) -> str:
    """Return a table of expected calibration errors and of accuracy by bin."""
    by_key = reliabilities(rows, lowest)
    lines = [
        [str(k), scores, f"{reliability.error:.3f}", " ".join(f"{s:.2f}→{a:.2f} ({n})" for s, a, n in reliability.bins)]
        for (k, scores), reliability in sorted(by_key.items())
    ]
    return markdown(["examples per label", "scores", "calibration error", "mean score → accuracy (entities)"], lines)
