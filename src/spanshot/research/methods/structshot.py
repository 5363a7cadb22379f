"""StructShot: NNShot's scores, and the best path over them by transitions counted on the source corpus.

Yang and Katiyar, "Simple and Effective Few-Shot Named Entity Recognition with Structured Nearest Neighbor Learning",
EMNLP 2020.

NNShot's scores are emissions of a chain whose transitions are counted on the source corpus without regard to labels
(out of a span, into one, on within it, into another), shared out among the labels at hand, and tempered by tau.
Departures: one is added to every count, and the end of a sentence is counted as well; otherwise as NNShot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spanshot.decode.decoders import Decoder, TagDecoder
from spanshot.decode.transitions import count_kinds, kinds, log_probabilities, spread
from spanshot.errors import ConfigError
from spanshot.research.learning.tokens import TokenSettings
from spanshot.research.methods.nnshot import NNShot
from spanshot.research.nn.encoder import Encoder
from spanshot.tags import outermost, tags_from_spans, tags_of_labels
from spanshot.types import Sentence, SupportSet


@dataclass(frozen=True)
class StructShotSettings(TokenSettings):
    """NNShot's settings, and how much the transitions count."""

    tau: float = 0.32
    """Power to which transition probabilities are raised: 0 makes all alike, 1 leaves them as counted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tau < 0:
            raise ConfigError(f"tau must be 0 or more; found {self.tau}")


class StructShot(NNShot):
    """StructShot."""

    name = "structshot"
    Settings = StructShotSettings

    def __init__(self, encoder: Encoder, settings: StructShotSettings) -> None:
        super().__init__(encoder, settings)
        self.settings: StructShotSettings = settings
        self.log_transitions: Tensor
        unknown = log_probabilities(np.zeros(len(kinds(settings.scheme))), settings.scheme)
        self.register_buffer("log_transitions", torch.from_numpy(unknown).float())

    def study(self, sentences: Iterable[Sentence]) -> None:  # noqa: D102
        scheme = self.settings.scheme
        tagged = (tags_from_spans(len(s), outermost(s.spans), scheme) for s in sentences)
        counted = log_probabilities(count_kinds(tagged, scheme), scheme)
        self.log_transitions.copy_(torch.from_numpy(counted))

    def decoder(self, support: SupportSet) -> Decoder:  # noqa: D102
        scheme = self.settings.scheme
        table = self.log_transitions.cpu().numpy().astype(np.float64)
        return TagDecoder(scheme, spread(table, tags_of_labels(support.labels, scheme), scheme, self.settings.tau))
