"""StructShot: NNShot's scores, decoded with transitions counted on the source corpus.

Yang and Katiyar, "Simple and Effective Few-Shot Named Entity Recognition with Structured Nearest Neighbor Learning",
EMNLP 2020.

NNShot's scores are the emissions of a chain. Its transitions are counted on the source corpus by kind, whatever the
labels (into a span, out of it, on within it, into another), divided among the labels of a support set, and raised to
the power tau.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from spanshot.decode.decoders import Decoder, TagDecoder
from spanshot.decode.scores import TokenScores
from spanshot.decode.transitions import count_kinds, kinds, log_probabilities, spread
from spanshot.errors import ConfigError
from spanshot.research.learning.tokens import TokenSettings
from spanshot.research.methods.nnshot import NNShot
from spanshot.research.nn.encoder import Encoder
from spanshot.tags import outermost, tags_from_spans, tags_of_labels
from spanshot.types import Sentence, SupportSet


@dataclass(frozen=True)
class StructShotSettings(TokenSettings):
    """NNShot's settings, and the weight of the transitions."""

    tau: float = 0.32
    """Power of the transition probabilities (0: all are equal; 1: as counted)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tau < 0:
            raise ConfigError(f"tau must be 0 or more; found {self.tau}")


class StructShot(NNShot[StructShotSettings]):
    """StructShot.

    Departures: one is added to every count, and the end of a sentence is counted; otherwise as NNShot.
    """

    name = "structshot"
    Settings = StructShotSettings

    def __init__(self, encoder: Encoder, settings: StructShotSettings) -> None:
        super().__init__(encoder, settings)
        self.log_transitions: Tensor
        unknown = log_probabilities(np.zeros(len(kinds(settings.scheme))), settings.scheme)
        self.register_buffer("log_transitions", torch.from_numpy(unknown).float())

    @override
    def compute_statistics(self, sentences: Iterable[Sentence]) -> None:
        scheme = self.settings.scheme
        tagged = (tags_from_spans(len(s), outermost(s.spans), scheme) for s in sentences)
        counted = log_probabilities(count_kinds(tagged, scheme), scheme)
        self.log_transitions.copy_(torch.from_numpy(counted))

    @override
    def decoder(self, support: SupportSet) -> Decoder[TokenScores]:
        scheme = self.settings.scheme
        table = self.log_transitions.cpu().numpy().astype(np.float64)
        return TagDecoder(scheme, spread(table, tags_of_labels(support.labels, scheme), scheme, self.settings.tau))
