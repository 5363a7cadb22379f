"""Fit the map from logits to scores, and the default thresholds, to recorded guesses on users' domains.

The map is a logistic regression of correctness on the logit and the log of the label's examples. Thresholds are those
with the best mean F1 over domains and numbers of examples among those that keep false alarms low.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from spanshot.heads.settings import ScoreSettings
from spanshot.heads.solver import Problem, solve
from spanshot.research.experiments.ledger import Row
from spanshot.research.experiments.systems import NAMES

Array = npt.NDArray[np.float64]
MOST_FALSE_ALARMS = 0.35
"""Most texts without entities, as a share, in which one is found."""
THRESHOLDS = np.arange(-2.0, 1.01, 0.05)
PER_LOG_COUNT = np.arange(0.0, 0.51, 0.05)


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses of one domain with one number of examples per label."""

    shots: int
    logits: Array
    right: npt.NDArray[np.bool_]
    logs: Array
    """Log of the examples of each guess's label."""
    in_empty: npt.NDArray[np.int64]
    """Number of the text without gold entities that a guess stands in, or -1."""
    empty: int
    gold: int

    @classmethod
    def of(cls, rows: Sequence[Row], settings: ScoreSettings) -> Guesses:
        """Join the episodes of a domain, and turn scores back into logits."""
        logits, right, logs, in_empty = [], [], [], []
        empty = gold = 0
        for row in rows:
            counts = np.array(row["examples"], int)
            score = np.array(row["scores"], float).clip(1e-6, 1 - 1e-6)
            slope, shift = settings.maps(counts.tolist())
            logits.append((np.log(score / (1 - score)) - shift) / slope)
            right.append(np.array(row["right"], bool))
            logs.append(np.log(counts.clip(1, settings.most_examples)))
            place = {text: empty + number for number, text in enumerate(np.array(row["empty"], int).tolist())}
            in_empty.append(np.array([place.get(text, -1) for text in np.array(row["texts"], int).tolist()], int))
            empty += len(place)
            gold += int(str(row["gold"]))
        return cls(
            int(str(rows[0]["shots"])),
            np.concatenate(logits),
            np.concatenate(right),
            np.concatenate(logs),
            np.concatenate(in_empty),
            empty,
            gold,
        )

    def figures(self, threshold: float, per_log_count: float) -> tuple[float, int]:
        """Return F1 in percent, and the number of texts with a false alarm."""
        taken = self.logits >= threshold + per_log_count * self.logs
        tp = int((taken & self.right).sum())
        alarms = len(np.unique(self.in_empty[taken & (self.in_empty >= 0)]))
        return 200 * tp / max(1, int(taken.sum()) + self.gold), alarms


@dataclass(frozen=True, slots=True)
class Fitted:
    """The settings found, and a line on what they give."""

    settings: ScoreSettings
    summary: str


def fit(rows: Iterable[Row], current: ScoreSettings) -> Fitted:
    """Fit all score settings to the rows of a ledger, whose scores were made with the ``current`` settings."""
    groups: dict[tuple[bool, int, str], list[Row]] = {}
    for row in rows:
        key = row["mode"] == NAMES, int(str(row["shots"])), str(row["domain"])
        groups.setdefault(key, []).append(row)
    shown = [Guesses.of(own, current) for (by_name, _, _), own in groups.items() if not by_name]
    named = [Guesses.of(own, current) for (by_name, _, _), own in groups.items() if by_name]
    slope, per_log_count, shift = logistic_map(shown)
    threshold, by_count = best_thresholds(shown, PER_LOG_COUNT)
    settings = replace(
        current,
        slope=slope,
        shift=shift,
        per_log_count=per_log_count,
        threshold=threshold,
        threshold_per_log_count=by_count,
    )
    lines = [f"names and examples: {describe(shown, threshold, by_count)}"]
    if named:
        name_slope, _, name_shift = logistic_map(named)
        name_threshold, _ = best_thresholds(named, np.zeros(1))
        settings = replace(settings, name_slope=name_slope, name_shift=name_shift, name_threshold=name_threshold)
        lines.append(f"names only: {describe(named, name_threshold, 0.0)}")
    return Fitted(settings, "\n".join(lines))


def logistic_map(groups: Sequence[Guesses]) -> tuple[float, float, float]:
    """Fit a logistic regression of correctness: factors of the logit and of the log of the examples, and a shift."""
    logits = np.concatenate([own.logits for own in groups])[:, None]
    logs = np.concatenate([own.logs for own in groups])[:, None]
    right = np.concatenate([own.right for own in groups])[:, None]
    theta = np.zeros((1, 3))
    # The solver's prior score stands for the log of the examples, its bias for the shift.
    problem = Problem(logits, logs, right, np.ones((len(logits), 1)), np.full_like(theta, 1e-3), theta)
    slope, per_log_count, shift = (round(float(value), 3) for value in solve(problem)[0])
    return slope, per_log_count, shift


def best_thresholds(groups: Sequence[Guesses], per_log_count: Array) -> tuple[float, float]:
    """Return threshold and factor of the log of the examples with the best F1, if possible with few false alarms."""
    found = []
    for threshold, factor in product(THRESHOLDS.tolist(), per_log_count.tolist()):
        f1, alarms = _figures(groups, threshold, factor)
        allowed = all(share <= MOST_FALSE_ALARMS for share in alarms.values())
        found.append((allowed, float(np.mean(list(f1.values()))), round(threshold, 2), round(factor, 2)))
    best = max(f1 for _, f1, _, _ in found)
    # Few false alarms are worth a point of F1, not more.
    kept = [own for own in found if own[0] and own[1] > best - 1.0] or found
    _, _, threshold, factor = max(kept, key=lambda own: own[1])
    return threshold, factor


def describe(groups: Sequence[Guesses], threshold: float, per_log_count: float) -> str:
    """Return F1 and false alarms by number of examples."""
    f1, alarms = _figures(groups, threshold, per_log_count)
    return ", ".join(f"{k} per label: F1 {f1[k]:.2f}, false alarms {100 * alarms[k]:.0f} %" for k in f1)


def _figures(
    groups: Sequence[Guesses], threshold: float, per_log_count: float
) -> tuple[dict[int, float], dict[int, float]]:
    """Return mean F1 over domains, and the share of false alarms, by number of examples per label."""
    results: dict[int, list[tuple[float, int, int]]] = {}
    for own in groups:
        results.setdefault(own.shots, []).append((*own.figures(threshold, per_log_count), own.empty))
    f1 = {k: float(np.mean([value for value, _, _ in own])) for k, own in results.items()}
    alarms = {k: sum(hit for _, hit, _ in own) / max(1, sum(n for _, _, n in own)) for k, own in results.items()}
    return f1, alarms
