"""The trained settings of the linear head, as plain numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """Penalties, the weight of the background, and the map from fitted scores to logits."""

    shrink_named: float = 0.05
    """Penalty on the weights of a label with a name, towards factor times the name's vector."""
    shrink_nameless: float = 0.05
    factor_named: float = 1.0
    """Penalty on the factor of a name's vector, towards 1."""
    factor_nameless: float = 1.0
    bias: float = 0.01
    """Penalty on the bias, towards the name's; small, so that examples decide."""
    background: float = 50.0
    """Total weight of the unmarked spans, as a multiple of the number of marked ones."""
    slope: float = 1.0
    """A logit is ``slope * score + shift + shift_per_log_count * log(examples of the label)``."""
    shift: float = 0.0
    shift_per_log_count: float = 0.0
    match: float = 0.0
    """Bonus for a text that all its occurrences in the examples mark with the label; see ``lexicon``."""

    def to_json(self) -> str:
        """Return the settings as a JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> HeadSettings:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """How logits become probabilities, and the default thresholds. All were fitted on episodes after training.

    ``score = sigmoid(slope * logit + shift + per_log_count * log(examples of the label))``. A default threshold is a
    logit too, ``threshold + threshold_per_log_count * log(examples)``; users see it as a score. Labels whose names say
    nothing have numbers of their own for it, as differences.
    """

    slope: float = 1.0
    shift: float = 0.0
    per_log_count: float = 0.0
    threshold: float = 0.0
    threshold_per_log_count: float = 0.0
    nameless_threshold: float = 0.0
    """Added to ``threshold`` for labels without a name that says something."""
    nameless_threshold_per_log_count: float = 0.0
    most_examples: int = 20
    """A label with more examples counts as one with this many: the numbers were fitted with few."""
    name_slope: float = 1.0
    """For labels without an example, known by name only."""
    name_shift: float = 0.0
    name_threshold: float = 0.0
    nested_threshold: float = 0.5
    """Least score of an entity inside or around a better one of the same label."""

    def maps(self, counts: Sequence[int]) -> tuple[Values, Values]:
        """Return factor and shift of each label, for logits to become those of probabilities. [labels] each"""
        logs = self._logs(counts)
        known = np.asarray(counts) > 0
        shift = np.where(known, self.shift + self.per_log_count * logs, self.name_shift)
        return np.where(known, self.slope, self.name_slope), shift

    def default_thresholds(self, counts: Sequence[int], named: Sequence[bool]) -> Values:
        """Return the default threshold of each label as a score, by its examples and whether it has a name. [labels]"""
        slope, shift = self.maps(counts)
        logs = self._logs(counts)
        by_count = self.threshold + self.threshold_per_log_count * logs
        nameless = self.nameless_threshold + self.nameless_threshold_per_log_count * logs
        by_count = np.where(named, by_count, by_count + nameless)
        logits = np.where(np.asarray(counts) > 0, by_count, self.name_threshold)
        return np.asarray(1 / (1 + np.exp(-(slope * logits + shift))))

    def _logs(self, counts: Sequence[int]) -> Values:
        return np.log(np.clip(np.asarray(counts, np.float64), 1, self.most_examples))
