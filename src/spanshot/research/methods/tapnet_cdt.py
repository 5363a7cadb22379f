"""L-TapNet+CDT: words in a space made for the support set, tags by a chain whose transitions transfer.

Hou et al., "Few-Shot Slot Tagging with Collapsed Dependency Transfer and Label-Enhanced Task-Adaptive
Projection Network", ACL 2020.

Each tag has a prototype (the mean of its words in the support set) and a reference (made of its name). A projection
removes the directions in which the two differ, and words are compared with prototypes, mixed with references, in the
projected space. A CRF connects the tags; its transitions are learned for kinds of steps and expanded for the labels of
a support set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from typing_extensions import override

from spanshot.decode.decoders import Decoder, TagDecoder
from spanshot.decode.scores import TokenScores
from spanshot.decode.transitions import kinds
from spanshot.errors import ConfigError
from spanshot.research.learning.metric import MetricMethod, MetricSettings
from spanshot.research.learning.tokens import labels_of_tags, words_by_tag
from spanshot.research.nn.crf import ChainLogits, chain_loss
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.label_names import in_words
from spanshot.research.nn.loss import gold_tags
from spanshot.tags import find_scheme, tags_of_labels
from spanshot.types import OUTSIDE, Episode, Sentence, SupportSet

_SPOKEN = {OUTSIDE: "ordinary word", "B": "begin", "I": "inner", "E": "end", "S": "single"}


@dataclass(frozen=True)
class TapNetSettings(MetricSettings):
    """Settings of L-TapNet+CDT."""

    scheme: str = "bio"
    """Tag scheme: io, bio or bioes."""
    name_weight: float = 0.5
    """Share of the reference in the prototypes that words are compared with (0 to 1; beta in the paper)."""
    pairs: bool = True
    """Encode each query sentence together with each support sentence; off: each sentence alone."""
    segment_ids: bool = True
    """Mark the second sentence of a pair with segment ids, if the encoder has them."""
    transitions: bool = True
    """Score tags as a chain with transitions learned on the source corpus; off: word by word."""

    def __post_init__(self) -> None:
        find_scheme(self.scheme)
        if not 0 <= self.name_weight <= 1:
            raise ConfigError(f"name_weight must be from 0 to 1; found {self.name_weight}")


@dataclass(frozen=True)
class NamedSupport:
    """The support set and the vectors of its tags' names. Its words are encoded with each query sentence."""

    support: SupportSet
    tags: tuple[str, ...]
    names: Tensor  # [tags, size]


class TapNetCdt(MetricMethod[TapNetSettings, NamedSupport, TokenScores]):
    """L-TapNet+CDT.

    Departures: half of a reference is a learned map of the tag's name, where the authors have a vector drawn from a
    fixed stock, so that the number of labels is not in the weights and their order does not matter; similarities are
    cosines with a learned scale, not dot products; no gradient passes through the projection; with more tags than half
    of the encoder's size, only the main directions of their errors are removed. As in the authors' code, the share of
    the name in a mixed prototype is the reference. ``segment_ids`` can be switched off for encoders that were not
    pretrained on pairs.
    """

    name = "tapnet_cdt"
    Settings = TapNetSettings
    reads_label_names = True

    def __init__(self, encoder: Encoder, settings: TapNetSettings) -> None:
        super().__init__(encoder, settings)
        self.reference = nn.Linear(encoder.size, encoder.size)
        self.log_scale = nn.Parameter(torch.tensor(2.3))
        steps = len(kinds(settings.scheme)) if settings.transitions else 0
        self.step_scores = nn.Parameter(torch.zeros(steps), requires_grad=settings.transitions)

    @override
    def remember(self, support: SupportSet) -> NamedSupport:
        tags = tags_of_labels(support.labels, self.settings.scheme)
        words = self.encoder([_spoken(tag, self.settings.scheme) for tag in tags])
        names = torch.stack([name.mean(0) for name in torch.split(words.first, list(words.lengths))])
        return NamedSupport(support, tags, names)

    def emissions(self, memory: NamedSupport, sentences: Sequence[Sentence]) -> list[Tensor]:
        """Score the words of each sentence for each tag. [words, tags] each"""
        members = words_by_tag(memory.support, memory.tags, self.settings.scheme)
        read = self._read_pairs if self.settings.pairs else self._read_alone
        return [
            self._emissions(memory, [support[rows] if rows else None for rows in members], query)
            for support, query in read(memory.support.sentences, sentences)
        ]

    @override
    def scores(self, memory: NamedSupport, sentences: Sequence[Sentence]) -> list[TokenScores]:
        return [TokenScores(memory.tags, emissions.cpu().numpy()) for emissions in self.emissions(memory, sentences)]

    @override
    def episode_loss(self, episode: Episode) -> Tensor:
        """Return the loss of the CRF. Query sentences with words of O are ignored if the support set has none."""
        memory = self.remember(episode.support)
        emissions = nn.utils.rnn.pad_sequence(
            self.emissions(memory, episode.query), batch_first=True
        )  # [n, words, tags]
        gold = [gold_tags(sentence, memory.tags, self.settings.scheme) for sentence in episode.query]
        return chain_loss(emissions, gold, self._transitions(memory.tags))

    @override
    def decoder(self, support: SupportSet) -> Decoder[TokenScores]:
        if not self.settings.transitions:
            return TagDecoder(self.settings.scheme)
        tags = tags_of_labels(support.labels, self.settings.scheme)
        return TagDecoder(self.settings.scheme, self._transitions(tags).transitions())

    @override
    def class_labels(self, support: SupportSet) -> list[str]:
        return labels_of_tags(support, self.settings.scheme)

    def _transitions(self, tags: Sequence[str]) -> ChainLogits:
        if self.settings.transitions:
            return ChainLogits.of_kinds(self.step_scores, tags, self.settings.scheme)
        none = self.log_scale.new_zeros(len(tags))
        return ChainLogits(none, none.expand(len(tags), -1), none)

    def _read_pairs(self, support: Sequence[Sentence], query: Sequence[Sentence]) -> list[tuple[Tensor, Tensor]]:
        """Encode each query sentence with each support sentence.

        Return for each query sentence the support words, and its own words averaged over the support sentences.
        """
        pairs = [(support_sentence, query_sentence) for query_sentence in query for support_sentence in support]
        words = self.encoder.pairs(pairs, segment_ids=self.settings.segment_ids)
        parts = list(torch.split(words.first, list(words.lengths)))
        encoded = []
        for number in range(len(query)):
            with_support = parts[number * len(support) : (number + 1) * len(support)]
            support_words = torch.cat([part[: len(s)] for part, s in zip(with_support, support, strict=True)])
            query_words = torch.stack([part[len(s) :] for part, s in zip(with_support, support, strict=True)]).mean(0)
            encoded.append((support_words, query_words))  # [support words, size], [words, size]
        return encoded

    def _read_alone(self, support: Sequence[Sentence], query: Sequence[Sentence]) -> list[tuple[Tensor, Tensor]]:
        support_words, query_words = self.encoder([*support, *query]).split(len(support))
        return [(support_words.first, words) for words in torch.split(query_words.first, list(query_words.lengths))]

    def _emissions(self, memory: NamedSupport, tag_words: Sequence[Tensor | None], query: Tensor) -> Tensor:
        """Scores of a sentence's words [words, size], given the support's words of each tag. [words, tags]"""
        prototypes = torch.stack(
            [words.mean(0) for words in tag_words if words is not None]
        )  # c [tags with words, size]
        names = memory.names[-len(prototypes) :]
        references = (names + self.reference(names)) / 2  # psi [tags with words, size]
        project = removing(projection_errors(prototypes, references))
        weight = self.settings.name_weight
        mixed = (1 - weight) * prototypes + weight * references  # Omega
        near = nn.functional.normalize(project(query), dim=1) @ nn.functional.normalize(project(mixed), dim=1).T
        near = near * self.log_scale.exp()
        complete = len(prototypes) == len(memory.tags)
        return near if complete else nn.functional.pad(near, (1, 0), value=-torch.inf)


def projection_errors(prototypes: Tensor, references: Tensor) -> Tensor:
    """Differences that the projection removes: of references, each less the mean of all others, and prototypes.

    Both [tags, size] are normalized first. [tags, size]
    """
    other_references = (references.sum(0, keepdim=True) - references) / max(1, len(references) - 1)
    return nn.functional.normalize(references - other_references, dim=1) - nn.functional.normalize(prototypes, dim=1)


def removing(errors: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the projection of vectors [n, size] onto the space orthogonal to the errors [tags, size].

    At most half of the space is removed; with more tags than that, the main directions of the errors.
    """
    with torch.no_grad():
        directions = torch.linalg.svd(errors.float(), full_matrices=False)[2]  # [tags, size], strongest first
    directions = directions[: errors.shape[1] // 2]
    return lambda vectors: vectors - vectors @ directions.T @ directions


def _spoken(tag: str, scheme: str) -> Sentence:
    """Return a tag in words: ``B-timeRange`` is "begin time range"."""
    prefix, label = find_scheme(scheme).split(tag) or (OUTSIDE, "")
    return Sentence((*_SPOKEN[prefix].split(), *in_words(label).split()))
