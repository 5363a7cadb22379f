"""ProtoBERT: a word has the tag whose mean vector is nearest.

Fritzler et al., "Few-Shot Classification in Named Entity Recognition Task", SAC 2019, with BERT's vectors.

A tag's prototype is the mean of the support's words that have it; a word of the query is scored by its
negated squared distance to each. Departures: distances are divided by a temperature, without which a small
encoder's training starts from saturated scores; tags are IO unless set otherwise.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spanshot.research.learning.tokens import Nearness, TokenMethod, TokenSettings
from spanshot.research.nn.groups import Groups, squared_distances


class Proto(TokenMethod):
    """ProtoBERT."""

    name = "proto"
    Settings = TokenSettings

    def nearness(self, words: Tensor, support: Groups) -> Nearness:  # noqa: D102
        prototypes = torch.stack([support.vectors[rows].mean(0) for rows in support.rows if rows.stop > rows.start])
        return Nearness(list((-squared_distances(words, prototypes) / self.temperature).unbind(1)))
