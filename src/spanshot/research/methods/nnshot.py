"""NNShot: a word has the tag of the nearest support word.

Yang and Katiyar, "Simple and Effective Few-Shot Named Entity Recognition with Structured Nearest Neighbor Learning",
EMNLP 2020.

A query word is scored for each tag by its negated squared distance to the nearest support word with that tag.
"""

from __future__ import annotations

from typing import Generic

from torch import Tensor
from typing_extensions import override

from spanshot.research.learning.tokens import Nearness, TokenMethod, TokenSettings, TokenSettingsT
from spanshot.research.nn.groups import Groups, squared_distances


class NNShot(TokenMethod[TokenSettingsT], Generic[TokenSettingsT]):
    """NNShot.

    Departures: trained on episodes by these scores, as Few-NERD's version is, not as a classifier of the source labels;
    distances are divided by a temperature.
    """

    name = "nnshot"
    Settings = TokenSettings

    @override
    def nearness(self, words: Tensor, support: Groups) -> Nearness:
        near = -squared_distances(words, support.vectors) / self.temperature  # [words, support words]
        columns, nearest = [], []
        for rows in support.rows:
            if rows.stop > rows.start:
                best = near[:, rows].max(1)
                columns.append(best.values)
                nearest.append(best.indices + rows.start)
        return Nearness(columns, nearest)
