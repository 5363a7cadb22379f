"""TransferBERT: a tagger of the source labels, given a new head for the support's.

The fine-tuning baseline of Hou et al., "Few-Shot Slot Tagging with Collapsed Dependency Transfer and
Label-Enhanced Task-Adaptive Projection Network", ACL 2020.

Encoder and linear head are trained as an ordinary tagger on the source corpus; for a support set the head is
replaced by one for its labels, and both are fine-tuned on it. Departures: the new head begins at zero, so that
neither names nor order of labels matter; source labels of the same name in two domains are one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor

from spanshot.decode.decoders import TagDecoder
from spanshot.research.learning.fine_tuning import FineTuningMethod, Learner, WholeFineTuneSettings
from spanshot.research.learning.method import as_arrays
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.loss import token_loss
from spanshot.research.nn.tag_head import TagHead
from spanshot.tags import find_scheme
from spanshot.types import Episode, ScoredSpan, Sentence, SupportSet


@dataclass(frozen=True)
class TransferSettings(WholeFineTuneSettings):
    """Settings of TransferBERT."""

    scheme: str = "bio"
    """Tags of words: io, bio or bioes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        find_scheme(self.scheme)


class Transfer(FineTuningMethod):
    """TransferBERT."""

    name = "transfer"
    Settings = TransferSettings

    def __init__(self, encoder: Encoder, settings: TransferSettings) -> None:
        super().__init__(encoder, settings)
        self.settings: TransferSettings = settings
        self.source_head = TagHead(encoder.size, settings.scheme)

    def study(self, sentences: Iterable[Sentence]) -> None:
        """Learn which labels the source corpus has, unless they are known already."""
        labels = tuple(sorted({span.label for sentence in sentences for span in sentence.spans}))
        if labels != self.source_head.labels:
            self.source_head.know(labels)

    def episode_loss(self, episode: Episode) -> Tensor:
        """The loss as an ordinary tagger on all sentences; words of labels that the source lacks are left out."""
        sentences = [*episode.support.sentences, *episode.query]
        return token_loss(self.source_head(self.encoder(sentences)), sentences, self.settings.scheme)

    def learner(self, support: SupportSet) -> Learner:  # noqa: D102
        return _TagLearner(copy.deepcopy(self.encoder), self.settings.scheme, support)


class _TagLearner(Learner):
    def __init__(self, encoder: Encoder, scheme: str, support: SupportSet) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = TagHead(encoder.size, scheme, support.labels).to(encoder.device)
        self.support = support

    def forward(self, numbers: Sequence[int]) -> Tensor:
        sentences = [self.support.sentences[number] for number in numbers]
        return token_loss(self.head(self.encoder(sentences)), sentences, self.head.scheme)

    def tag(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        decode = TagDecoder(self.head.scheme)
        return [decode(as_arrays(own)) for own in self.head(self.encoder(sentences))]
