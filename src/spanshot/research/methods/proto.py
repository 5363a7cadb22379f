"""ProtoBERT: a word has the tag with the nearest mean vector.

Fritzler et al., "Few-Shot Classification in Named Entity Recognition Task", SAC 2019, with BERT's vectors.

The prototype of a tag is the mean of its words in the support set. A query word is scored by its negated squared
distance to each prototype.
"""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from spanshot.research.learning.tokens import Nearness, TokenMethod, TokenSettings
from spanshot.research.nn.groups import Groups, squared_distances


class Proto(TokenMethod):
    """ProtoBERT.

    Departures: distances are divided by a temperature, without which the training of a small encoder starts from
    saturated scores; tags are IO unless set otherwise.
    """

    name = "proto"
    Settings = TokenSettings

    @override
    def nearness(self, words: Tensor, support: Groups) -> Nearness:
        prototypes = torch.stack([support.vectors[rows].mean(0) for rows in support.rows if rows.stop > rows.start])
        return Nearness(list((-squared_distances(words, prototypes) / self.temperature).unbind(1)))
