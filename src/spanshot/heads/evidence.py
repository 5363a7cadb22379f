"""The marked and rejected spans of the examples, with their part in the weights of a fitted head."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spanshot.heads.fit import Table
from spanshot.heads.linear import Floats, LinearHead, sigmoid


@dataclass(frozen=True)
class Annotated:
    """The marked and rejected spans of the examples.

    At the minimum of the objective, a label's own weights are a weighted sum of all rows. So the part of an annotated
    span in the logit of a new span is its coefficient times the product of their vectors.
    """

    vectors: Floats  # [annotated, size]
    coefficients: Floats  # [annotated, labels]: weights in that sum, times the slope
    sentence: npt.NDArray[np.int64]  # [annotated]
    row: npt.NDArray[np.int64]  # [annotated]: position among the annotated spans of its sentence

    @classmethod
    def of(cls, head: LinearHead) -> Annotated:
        """Return the annotated spans that a head is fitted to."""
        table = Table.of(head.sentences, head.prior, head.settings)
        places = np.flatnonzero(table.judged)
        vectors, thetas = table.features[places], head.thetas
        scores = vectors.astype(np.float64) @ (thetas[:, :-2] + thetas[:, -2:-1] * head.prior.weights).T + thetas[:, -1]
        slopes = np.array([head.slope(label) for label in range(len(thetas))])
        pull = table.weights[places] * (table.marked[places] - sigmoid(scores))
        coefficients = (slopes / table.strength[:, 0] * pull).astype(np.float32)
        return cls(vectors, coefficients, table.sentence[places], table.row[places])

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """Annotated spans by the size of their coefficients, for each label. [annotated, labels]"""
        return np.argsort(-np.abs(self.coefficients), axis=0, kind="stable")
