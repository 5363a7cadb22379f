"""Fit the map from logits to scores, and the default thresholds, to recorded guesses on users' domains.

The map is a logistic regression of correctness on the logit and the log of the label's examples. The
thresholds maximise mean F1 over domains and numbers of examples, subject to few false alarms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from spanshot.heads.fit import Problem, solve
from spanshot.heads.settings import ScoreSettings
from spanshot.research.experiments.ledger import Row
from spanshot.research.experiments.systems import BOTH, EXAMPLES, NAMES

Array = npt.NDArray[np.float64]
MOST_FALSE_ALARMS = 0.35
"""Highest accepted share of texts without entities in which the tagger finds one."""
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
    """For each guess, the number of its text among those without gold entities, or -1."""
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
        accepted = self.logits >= threshold + per_log_count * self.logs
        tp = int((accepted & self.right).sum())
        alarms = len(np.unique(self.in_empty[accepted & (self.in_empty >= 0)]))
        return 200 * tp / max(1, int(accepted.sum()) + self.gold), alarms


@dataclass(frozen=True, slots=True)
class Figures:
    """Mean F1 over domains in percent, and the share of texts with a false alarm, by number of examples per label."""

    f1: dict[int, float]
    alarms: dict[int, float]

    def __str__(self) -> str:
        return ", ".join(
            f"{k} per label: F1 {self.f1[k]:.2f}, false alarms {100 * self.alarms[k]:.0f} %" for k in self.f1
        )


@dataclass(frozen=True, slots=True)
class Fitted:
    """The fitted settings and their figures."""

    settings: ScoreSettings
    with_examples: Figures
    nameless: Figures | None
    """With examples, and names that say nothing."""
    names_only: Figures | None

    @property
    def summary(self) -> str:
        """The figures as text."""
        parts = ((BOTH, self.with_examples), (EXAMPLES, self.nameless), (NAMES, self.names_only))
        return "\n".join(f"{mode}: {part}" for mode, part in parts if part)


def fit(rows: Iterable[Row], current: ScoreSettings) -> Fitted:
    """Fit all score settings to the rows of a ledger that was measured with the ``current`` settings."""
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((str(row["mode"]), int(str(row["shots"])), str(row["domain"])), []).append(row)
    with_examples, by_examples, by_names = (
        [Guesses.of(group, current) for (mode, _, _), group in groups.items() if mode == wanted]
        for wanted in (BOTH, EXAMPLES, NAMES)
    )
    slope, per_log_count, shift = logistic_map(with_examples)
    threshold, by_count = best_thresholds(with_examples, PER_LOG_COUNT)
    settings = replace(
        current,
        slope=slope,
        shift=shift,
        per_log_count=per_log_count,
        threshold=threshold,
        threshold_per_log_count=by_count,
    )
    nameless = names_only = None
    if by_examples:
        nameless_threshold, nameless_by_count = best_thresholds(by_examples, PER_LOG_COUNT)
        settings = replace(
            settings,
            nameless_threshold=round(nameless_threshold - threshold, 2),
            nameless_threshold_per_log_count=round(nameless_by_count - by_count, 2),
        )
        nameless = figures(by_examples, nameless_threshold, nameless_by_count)
    if by_names:
        name_slope, _, name_shift = logistic_map(by_names)
        name_threshold, _ = best_thresholds(by_names, np.zeros(1))
        settings = replace(settings, name_slope=name_slope, name_shift=name_shift, name_threshold=name_threshold)
        names_only = figures(by_names, name_threshold, 0.0)
    return Fitted(settings, figures(with_examples, threshold, by_count), nameless, names_only)


def logistic_map(groups: Sequence[Guesses]) -> tuple[float, float, float]:
    """Fit a logistic regression of correctness; return the factors of logit and log count, and the intercept."""
    logits = np.concatenate([guesses.logits for guesses in groups])
    logs = np.concatenate([guesses.logs for guesses in groups])
    right = np.concatenate([guesses.right for guesses in groups])[:, None]
    theta = np.zeros((1, 3))
    rows = np.stack([logits, logs, np.ones(len(logits))], 1)
    problem = Problem(rows, right, np.ones((len(rows), 1)), np.full_like(theta, 1e-3), theta, theta)
    slope, per_log_count, shift = (round(float(value), 3) for value in solve(problem)[0])
    return slope, per_log_count, shift


def best_thresholds(groups: Sequence[Guesses], per_log_count: Array) -> tuple[float, float]:
    """Return the threshold and its factor of the log count with the best F1, if possible with few false alarms."""
    results = []
    for threshold, factor in product(THRESHOLDS.tolist(), per_log_count.tolist()):
        result = figures(groups, threshold, factor)
        allowed = all(share <= MOST_FALSE_ALARMS for share in result.alarms.values())
        results.append((allowed, float(np.mean(list(result.f1.values()))), round(threshold, 2), round(factor, 2)))
    best_f1 = max(f1 for _, f1, _, _ in results)
    # Give up at most one point of F1 for few false alarms.
    eligible = [result for result in results if result[0] and result[1] > best_f1 - 1.0] or results
    _, _, threshold, factor = max(eligible, key=lambda result: result[1])
    return threshold, factor


def figures(groups: Sequence[Guesses], threshold: float, per_log_count: float) -> Figures:
    """Return F1 and false alarms at a threshold."""
    by_shots: dict[int, list[tuple[float, int, int]]] = {}
    for guesses in groups:
        counted = guesses.figures(threshold, per_log_count)
        by_shots.setdefault(guesses.shots, []).append((*counted, guesses.empty))
    f1 = {k: float(np.mean([value for value, _, _ in rows])) for k, rows in by_shots.items()}
    alarms = {k: sum(hits for _, hits, _ in rows) / max(1, sum(n for _, _, n in rows)) for k, rows in by_shots.items()}
    return Figures(f1, alarms)
