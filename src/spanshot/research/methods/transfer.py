"""TransferBERT: a tagger of the source labels with a new head for the labels of the support set.

The fine-tuning baseline of Hou et al., "Few-Shot Slot Tagging with Collapsed Dependency Transfer and
Label-Enhanced Task-Adaptive Projection Network", ACL 2020.

Encoder and linear head are trained as an ordinary tagger on the source corpus. For a support set, the head is replaced
by one for its labels, and both are fine-tuned on it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor
from typing_extensions import override

from spanshot.decode.decoders import TagDecoder
from spanshot.decode.scores import TokenScores
from spanshot.research.learning.finetuned_methods import FinetunedMethod, Learner, WholeFinetunedSettings
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.loss import token_loss
from spanshot.research.nn.tag_head import TagHead
from spanshot.tags import find_scheme
from spanshot.types import Episode, ScoredSpan, Sentence, SupportSet


@dataclass(frozen=True)
class TransferSettings(WholeFinetunedSettings):
    """Settings of TransferBERT."""

    scheme: str = "bio"
    """Tag scheme: io, bio or bioes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        find_scheme(self.scheme)


class Transfer(FinetunedMethod[TransferSettings]):
    """TransferBERT.

    Departures: the weights of a new head are zero at first, so that neither names nor order of labels matter; source
    labels with the same name in two domains are one label.
    """

    name = "transfer"
    Settings = TransferSettings

    def __init__(self, encoder: Encoder, settings: TransferSettings) -> None:
        super().__init__(encoder, settings)
        self.source_head = TagHead(encoder.size, settings.scheme)

    @override
    def compute_statistics(self, sentences: Iterable[Sentence]) -> None:
        """Make a head for the labels of the source corpus, unless there is one already."""
        labels = tuple(sorted({span.label for sentence in sentences for span in sentence.spans}))
        if labels != self.source_head.labels:
            self.source_head.know(labels)

    @override
    def episode_loss(self, episode: Episode) -> Tensor:
        """Return the loss of an ordinary tagger on all sentences. Words with other labels are ignored."""
        sentences = [*episode.support.sentences, *episode.query]
        return token_loss(self.source_head(self.encoder(sentences)), sentences, self.settings.scheme)

    @override
    def learner(self, support: SupportSet) -> Learner:
        return _TagLearner(copy.deepcopy(self.encoder), self.settings.scheme, support)


class _TagLearner(Learner):
    def __init__(self, encoder: Encoder, scheme: str, support: SupportSet) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = TagHead(encoder.size, scheme, support.labels).to(encoder.device)
        self.support = support

    @override
    def forward(self, numbers: Sequence[int]) -> Tensor:
        sentences = [self.support.sentences[number] for number in numbers]
        return token_loss(self.head(self.encoder(sentences)), sentences, self.head.scheme)

    @override
    def tag(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        decode = TagDecoder(self.head.scheme)
        logits = self.head(self.encoder(sentences))
        return [decode(TokenScores(sentence.tags, sentence.logits.cpu().numpy())) for sentence in logits]
