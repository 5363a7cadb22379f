"""NNShot: a word has the tag of the nearest word of the support.

Yang and Katiyar, "Simple and Effective Few-Shot Named Entity Recognition with Structured Nearest Neighbor Learning",
EMNLP 2020.

A word of the query is scored for each tag by its squared distance to the nearest word of the support that has the tag.
Departures: trained on episodes by these scores, as Few-NERD's version is, not as a classifier of the source labels;
distances are divided by a temperature.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from spanshot.research.learning.tokens import Nearness, TokenMethod, TokenSettings
from spanshot.research.nn.groups import Groups, squared_distances


class NNShot(TokenMethod):
    """NNShot."""

    name = "nnshot"
    Settings: ClassVar[type] = TokenSettings

    def nearness(self, words: Tensor, support: Groups) -> Nearness:  # noqa: D102
        near = -squared_distances(words, support.vectors) / self.temperature  # [words, support words]
        columns, nearest = [], []
        for rows in support.rows:
            if rows.stop > rows.start:
                best = near[:, rows].max(1)
                columns.append(best.values)
                nearest.append(best.indices + rows.start)
        return Nearness(columns, nearest)
