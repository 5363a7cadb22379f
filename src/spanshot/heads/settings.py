"""The trained settings of the linear head, as plain numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


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
