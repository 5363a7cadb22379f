"""Explain a score of the linear head: an exact sum of signed terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spanshot.heads.linear import LinearHead, Term, penalty, row_weights, stack, used_rows
from spanshot.heads.rows import Floats
from spanshot.heads.solver import sigmoid

FIRST_LOOK = 512
"""Examples of a label that are looked at first, those with the largest coefficients."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """The marked and rejected spans of the examples.

    At the minimum of the objective, a label's own weights are a weighted sum of all rows.
    """

    vectors: Floats  # [annotated, size]
    coefficients: Floats  # [annotated, labels]: weights in that sum, times the slope
    sentence: npt.NDArray[np.int64]  # [annotated]
    row: npt.NDArray[np.int64]  # [annotated]: position among the annotated spans of its sentence

    @classmethod
    def of(cls, head: LinearHead) -> Annotated:
        """Return the annotated spans that a head is fitted to."""
        labels, size = head.prior.weights.shape
        table = stack(used_rows(head.sentences))
        places = np.flatnonzero(table.shown)
        if not len(places):
            none = np.zeros(0, np.int64)
            return cls(np.zeros((0, size), np.float32), np.zeros((0, labels), np.float32), none, none)
        vectors = table.features[places]
        coefficients = np.zeros((len(places), labels), np.float32)
        for label in range(labels):
            weights = row_weights(table, label, head.settings)
            if weights.any():
                theta = head.thetas[label]
                scores = vectors.astype(np.float64) @ (theta[:-2] + theta[-2] * head.prior.weights[label]) + theta[-1]
                shrink = penalty(head.settings, head.prior, label)[0][0]
                pull = table.marked[places, label] - sigmoid(scores)
                coefficients[:, label] = head.slope(label) * weights[places] * pull / shrink
        return cls(vectors, coefficients, table.sentence[places], table.row[places])


@dataclass(frozen=True)
class Explainer:
    """Splits logits into terms."""

    head: LinearHead
    annotated: Annotated

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        """Return the annotated spans, by the size of their coefficients, for each label. [annotated, labels]"""
        return np.argsort(-np.abs(self.annotated.coefficients), axis=0, kind="stable")

    def terms(self, vector: Floats, label: int, match: float = 0.0, most: int = 3) -> list[Term]:
        """Return the terms of a span's logit for a label: name, the ``most`` weightiest examples, text and rest.

        The sum of the values is the logit. An example's value is negative if the span resembles one that is marked
        otherwise. ``rest`` sums up all other examples, the unmarked spans and the bias.
        """
        head, annotated = self.head, self.annotated
        terms: list[Term] = []
        if head.prior.named[label]:
            by_name = float(vector @ head.prior.weights[label]) * float(head.thetas[label, -2]) * head.slope(label)
            terms.append(Term("name", by_name))
        best: list[tuple[float, int]] = []
        order = self._order[:, label]
        for begin in range(0, len(order), FIRST_LOOK):
            picks = order[begin : begin + FIRST_LOOK]
            own = annotated.coefficients[picks, label]
            # Vectors have length 1, so no further example can weigh more than its coefficient.
            if abs(own[0]) <= (abs(best[-1][0]) if len(best) == most else 0):
                break
            values = own * (annotated.vectors[picks] @ vector)
            top = np.argsort(-np.abs(values), kind="stable")[:most]
            best += [(float(values[at]), int(picks[at])) for at in top]
            best = sorted(best, key=lambda one: -abs(one[0]))[:most]
        terms += [
            Term("example", value, int(annotated.sentence[at]), int(annotated.row[at])) for value, at in best if value
        ]
        if match:
            terms.append(Term("text", head.settings.match * match))
        terms.sort(key=lambda term: -abs(term.value))
        total = float(head.scores(vector[None])[0, label]) + head.settings.match * match
        return [*terms, Term("rest", total - sum(term.value for term in terms))]
