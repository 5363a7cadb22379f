"""L-TapNet+CDT: words in a space made for the support set, tags by a chain whose transitions transfer.

Hou et al., "Few-Shot Slot Tagging with Collapsed Dependency Transfer and Label-Enhanced Task-Adaptive
Projection Network", ACL 2020.

Prototypes of tags, mixed with the vectors of their names, and references made of the names are projected to
where the two agree, and words are scored there by dot product. A CRF ties tags together; its transitions are
learned for kinds of steps and expanded for the labels at hand. Departures: references come from names through a
learned map, not from a fixed stock of vectors, so that the number of labels is not in the weights; the scores of
words are cosines with a learned scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spanshot.decode.decoders import Decoder, TagDecoder
from spanshot.decode.scores import TokenScores
from spanshot.decode.transitions import Transitions, expand, kinds
from spanshot.errors import ConfigError
from spanshot.research.learning.metric import MetricMethod, MetricSettings
from spanshot.research.learning.tokens import labels_of_tags, words_by_tag
from spanshot.research.nn.crf import chain_loss
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.label_names import in_words
from spanshot.research.nn.loss import gold_tags
from spanshot.tags import find_scheme, tags_of_labels
from spanshot.types import OUTSIDE, Sentence, SupportSet

_SPOKEN = {OUTSIDE: "ordinary word", "B": "begin", "I": "inner", "E": "end", "S": "single"}


@dataclass(frozen=True)
class TapNetSettings(MetricSettings):
    """Settings of L-TapNet+CDT."""

    scheme: str = "bio"
    """Tags of words: io, bio or bioes."""
    name_weight: float = 0.5
    """How much of a tag's prototype is its name (0..1), the rest being the support's words."""
    pairs: bool = True
    """Read each query sentence together with each support sentence; off, each sentence on its own."""
    transitions: bool = True
    """Score tags as a chain, with transitions that are learned on the source; off, word by word."""

    def __post_init__(self) -> None:
        find_scheme(self.scheme)
        if not 0 <= self.name_weight <= 1:
            raise ConfigError(f"name_weight must lie in 0..1; found {self.name_weight}")


@dataclass(frozen=True)
class NamedSupport:
    """The support set and the vectors of its tags' names; its words are read anew with each query."""

    support: SupportSet
    tags: tuple[str, ...]
    names: Tensor  # [tags, size]


class TapNetCdt(MetricMethod[NamedSupport]):
    """L-TapNet+CDT."""

    name = "tapnet_cdt"
    Settings = TapNetSettings
    reads_label_names = True

    def __init__(self, encoder: Encoder, settings: TapNetSettings) -> None:
        super().__init__(encoder, settings)
        self.settings: TapNetSettings = settings
        self.reference = nn.Linear(encoder.size, encoder.size)
        self.log_scale = nn.Parameter(torch.tensor(2.3))
        steps = len(kinds(settings.scheme)) if settings.transitions else 0
        self.step_scores = nn.Parameter(torch.zeros(steps), requires_grad=settings.transitions)

    def memory_of(self, support: SupportSet) -> NamedSupport:  # noqa: D102
        tags = tags_of_labels(support.labels, self.settings.scheme)
        words = self.encoder([_spoken(tag, self.settings.scheme) for tag in tags])
        names = torch.stack([own.mean(0) for own in torch.split(words.first, list(words.lengths))])
        return NamedSupport(support, tags, names)

    def score(self, memory: NamedSupport, sentences: Sequence[Sentence]) -> list[TokenScores]:  # noqa: D102
        members = words_by_tag(memory.support, memory.tags, self.settings.scheme)
        read = self._read_pairs if self.settings.pairs else self._read_alone
        found = []
        for support, query in read(memory.support.sentences, sentences):
            emissions = self._emissions(memory, [support[own] if own else None for own in members], query)
            found.append(TokenScores(memory.tags, emissions))
        return found

    def loss(self, scored: Sequence[TokenScores], gold: Sequence[Sentence]) -> Tensor:
        """The chain's loss; O may have no score at all, where the support has none."""
        tags = scored[0].tags
        emissions = nn.utils.rnn.pad_sequence([own.scores for own in scored], batch_first=True)  # [n, words, tags]
        wanted = [gold_tags(sentence, tags, self.settings.scheme) for sentence in gold]
        return chain_loss(emissions, wanted, self._transitions(tags))

    def decoder(self, support: SupportSet) -> Decoder:  # noqa: D102
        if not self.settings.transitions:
            return TagDecoder(self.settings.scheme)
        found = self._transitions(tags_of_labels(support.labels, self.settings.scheme))
        return TagDecoder(self.settings.scheme, found.as_arrays())

    def class_labels(self, support: SupportSet) -> list[str]:  # noqa: D102
        return labels_of_tags(support, self.settings.scheme)

    def _transitions(self, tags: Sequence[str]) -> Transitions:
        if self.settings.transitions:
            return expand(self.step_scores, tags, self.settings.scheme)
        none = self.log_scale.new_zeros(len(tags))
        return Transitions(none, none.expand(len(tags), -1), none)

    def _read_pairs(self, support: Sequence[Sentence], query: Sequence[Sentence]) -> list[tuple[Tensor, Tensor]]:
        """For each query sentence, the support's words as read with it, and its own on average over the support."""
        words = self.encoder.pairs([(shown, asked) for asked in query for shown in support])
        parts = list(torch.split(words.first, list(words.lengths)))
        found = []
        for number in range(len(query)):
            own = parts[number * len(support) : (number + 1) * len(support)]
            shown = torch.cat([part[: len(s)] for part, s in zip(own, support, strict=True)])
            asked = torch.stack([part[len(s) :] for part, s in zip(own, support, strict=True)]).mean(0)
            found.append((shown, asked))  # [support words, size], [words, size]
        return found

    def _read_alone(self, support: Sequence[Sentence], query: Sequence[Sentence]) -> list[tuple[Tensor, Tensor]]:
        shown, asked = self.encoder([*support, *query]).split(len(support))
        return [(shown.first, own) for own in torch.split(asked.first, list(asked.lengths))]

    def _emissions(self, memory: NamedSupport, shown: Sequence[Tensor | None], query: Tensor) -> Tensor:
        """Scores of a sentence's words [words, size], given the support's words of each tag. [words, tags]"""
        means = torch.stack([words.mean(0) for words in shown if words is not None])  # [tags with words, size]
        names = memory.names[-len(means) :]
        weight = self.settings.name_weight
        prototypes = nn.functional.normalize((1 - weight) * means + weight * names, dim=1)
        references = nn.functional.normalize(self.reference(names), dim=1)
        common = _null_space(references - prototypes)
        near = nn.functional.normalize(common(query), dim=1) @ nn.functional.normalize(common(references), dim=1).T
        near = near * self.log_scale.exp()
        return near if len(means) == len(memory.tags) else nn.functional.pad(near, (1, 0), value=-torch.inf)


class _null_space:  # noqa: N801 (a function that is made once and called twice)
    """A projection that takes the errors away, so that prototypes and references fall together.

    The errors span at most half of the space; with more tags than that, their main directions are taken.
    """

    def __init__(self, errors: Tensor) -> None:
        with torch.no_grad():
            directions = torch.linalg.svd(errors.float(), full_matrices=False)[2]  # [tags, size], strongest first
        self.directions = directions[: errors.shape[1] // 2]

    def __call__(self, vectors: Tensor) -> Tensor:
        within: Tensor = vectors - vectors @ self.directions.T @ self.directions
        return within


def _spoken(tag: str, scheme: str) -> Sentence:
    """A tag as words: ``B-timeRange`` is "begin time range"."""
    prefix, label = find_scheme(scheme).split(tag) or (OUTSIDE, "")
    return Sentence((*_SPOKEN[prefix].split(), *in_words(label).split()))
