"""Methods that compare words with words: the support's words, grouped by tag."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor
from typing_extensions import TypeVar, override

from spanshot.decode.decoders import Decoder, TagDecoder
from spanshot.decode.evidence import with_nearest_words
from spanshot.decode.scores import TokenScores
from spanshot.errors import ConfigError
from spanshot.research.learning.metric import MetricSettings, VectorMethod
from spanshot.research.nn.encoder import WordVectors
from spanshot.research.nn.groups import Groups, grouped
from spanshot.research.nn.loss import TokenLogits, token_loss
from spanshot.tags import find_scheme, outermost, tags_from_spans, tags_of_labels
from spanshot.types import ScoredSpan, Sentence, Span, SupportSet


@dataclass(frozen=True)
class TokenSettings(MetricSettings):
    """Settings of methods that compare words."""

    scheme: str = "io"
    """Tag scheme: io, bio or bioes. With io, all words of a label's spans have the same tag."""
    temperature: float = 0.0
    """Divisor of distances (0: the square root of the length of word vectors)."""

    def __post_init__(self) -> None:
        find_scheme(self.scheme)
        if self.temperature < 0:
            raise ConfigError(f"temperature must be 0 (automatic) or more; found {self.temperature}")


TokenSettingsT = TypeVar("TokenSettingsT", bound=TokenSettings, default=TokenSettings, covariant=True)


@dataclass(frozen=True)
class TokenMemory:
    """The support's words, grouped by tag."""

    tags: tuple[str, ...]
    words: Groups
    """One class per tag; O's may be empty, all others have a word."""
    origin: tuple[tuple[int, Span] | None, ...]
    """The support span of each word in ``words``, with the number of its sentence; None for words of O."""


@dataclass(frozen=True)
class Nearness:
    """How near words are to each tag that has words in the support set. Higher is nearer."""

    columns: list[Tensor]  # [words] for each tag
    nearest: list[Tensor] | None = None  # [words] for each tag: the nearest support word, if a single one decides


class TokenMethod(VectorMethod[TokenSettingsT, TokenMemory, TokenScores], Generic[TokenSettingsT]):
    """A method that compares words, as vectors of their first pieces, with the support's words of each tag."""

    @property
    def temperature(self) -> float:
        """Divisor of distances."""
        return self.settings.temperature or float(self.encoder.size**0.5)

    @abstractmethod
    def nearness(self, words: Tensor, support: Groups) -> Nearness:
        """Compare ``words`` [words, size] with each tag that has words in the support set."""

    def logits(self, memory: TokenMemory, words: WordVectors) -> list[TokenLogits]:
        """Score the words of each sentence."""
        near = self.nearness(words.first, memory.words)
        has_o = memory.words.rows[0].stop > 0
        lengths = list(words.lengths)

        def split(columns: list[Tensor], no_o: float) -> tuple[Tensor, ...]:
            columns = columns if has_o else [torch.full_like(columns[0], no_o), *columns]
            return torch.split(torch.stack(columns, dim=1), lengths)  # [words, tags] each

        logits = split(near.columns, -torch.inf)
        if near.nearest is None:
            return [TokenLogits(memory.tags, values) for values in logits]
        return [TokenLogits(memory.tags, *values) for values in zip(logits, split(near.nearest, -1), strict=True)]

    @override
    def memory_of(self, support: SupportSet, words: WordVectors) -> TokenMemory:
        scheme = self.settings.scheme
        tags = tags_of_labels(support.labels, scheme)
        members = words_by_tag(support, tags, scheme)
        return TokenMemory(tags, grouped(words.first, members), origin_of_words(support, tags, members, scheme))

    @override
    def scores(self, memory: TokenMemory, sentences: Sequence[Sentence]) -> list[TokenScores]:
        return [
            TokenScores(
                sentence.tags,
                sentence.logits.cpu().numpy(),
                None if sentence.nearest is None else sentence.nearest.cpu().numpy(),
            )
            for sentence in self.logits(memory, self.encoder(sentences))
        ]

    @override
    def loss(self, memory: TokenMemory, words: WordVectors, gold: Sequence[Sentence]) -> Tensor:
        return token_loss(self.logits(memory, words), gold, self.settings.scheme)

    @override
    def decoder(self, support: SupportSet) -> Decoder[TokenScores]:
        return TagDecoder(self.settings.scheme)

    @override
    def class_labels(self, support: SupportSet) -> list[str]:
        return labels_of_tags(support, self.settings.scheme)

    @override
    def explained(self, memory: TokenMemory, scores: TokenScores, spans: list[ScoredSpan]) -> list[ScoredSpan]:
        """Add the support spans of the nearest words, if single words decide."""
        columns: dict[str, list[int]] = {}
        for column, tag in enumerate(memory.tags):
            columns.setdefault(label_of(tag, self.settings.scheme), []).append(column)
        return with_nearest_words(spans, scores, columns, memory.origin)


def words_by_tag(support: SupportSet, tags: Sequence[str], scheme: str) -> list[list[int]]:
    """Return the support words with each tag, as numbers counted over all sentences.

    A tag that no word has (``I-city`` if all cities have one word, or a label marked only inside others) gets all words
    of its label.
    """
    by_tag: dict[str, list[int]] = {tag: [] for tag in tags}
    by_label: dict[str, list[int]] = {label: [] for label in support.labels}
    offset = 0
    for sentence in support.sentences:
        for at, tag in enumerate(tags_from_spans(len(sentence), outermost(sentence.spans), scheme), offset):
            by_tag[tag].append(at)
        for span in sentence.spans:
            by_label[span.label].extend(range(offset + span.start, offset + span.end))
        offset += len(sentence)
    return [words or by_label.get(label_of(tag, scheme), []) for tag, words in by_tag.items()]


def origin_of_words(
    support: SupportSet, tags: Sequence[str], members: Sequence[Sequence[int]], scheme: str
) -> tuple[tuple[int, Span] | None, ...]:
    """Find the sentence and the longest span of the tag's label that each of the tags' words is in; None for O."""
    sentence_of = [number for number, sentence in enumerate(support.sentences) for _ in sentence.words]
    position_of = [position for sentence in support.sentences for position in range(len(sentence))]
    origin: list[tuple[int, Span] | None] = []
    for tag, words in zip(tags, members, strict=True):
        label = label_of(tag, scheme)
        for word in words:
            number, position = sentence_of[word], position_of[word]
            around = [
                span
                for span in support.sentences[number].spans
                if span.label == label and span.start <= position < span.end
            ]
            origin.append((number, max(around, key=len)) if around else None)
    return tuple(origin)


def labels_of_tags(support: SupportSet, scheme: str) -> list[str]:
    """Return the label of each tag but O of a support set."""
    return [label_of(tag, scheme) for tag in tags_of_labels(support.labels, scheme)[1:]]


def label_of(tag: str, scheme: str) -> str:
    """Return the label of a tag; empty for O."""
    return (find_scheme(scheme).split(tag) or ("", ""))[1]
