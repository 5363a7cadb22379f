"""A linear head per label on span vectors, fitted to the support set and shrunk towards the label's name.

Keeps ESD's decomposition (candidate spans, span vectors, matching, conflicts) and replaces the matching by penalised
logistic regression, which training differentiates through:
L. Bertinetto, J. Henriques, P. Torr, A. Vedaldi: Meta-learning with differentiable closed-form solvers, ICLR 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from spanshot.decode.conflicts import NESTED, Greedy
from spanshot.decode.independent import IndependentDecoder
from spanshot.decode.scores import Bounds, SpanScores
from spanshot.engine.names import name_to_encode
from spanshot.errors import ConfigError
from spanshot.heads.fit import choose_rows, fit
from spanshot.heads.lexicon import Lexicon
from spanshot.heads.linear import Floats, LinearHead, Prior
from spanshot.heads.settings import HeadSettings as PlainHeadSettings
from spanshot.learner import annotation
from spanshot.linear_tagger import marked_spans
from spanshot.research.learning.fold_finetuning import FoldFinetuning, finetuned_on_folds
from spanshot.research.learning.metric import MetricMethod, MetricSettings
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.linear_episodes import (
    Names,
    PoolSpans,
    candidates,
    episode_loss,
    marks,
    names_loss,
    text_numbers,
)
from spanshot.research.nn.linear_head import HeadSettings
from spanshot.research.nn.linear_spans import NamePrior, UnitSpans
from spanshot.research.nn.spans import bounds_up_to
from spanshot.research.pools import Pool
from spanshot.types import Episode, Progress, Sentence, SupportSet

WORDS_AT_ONCE = 1024
"""Maximum number of support words per batch, padding included; bounds memory."""
NAMELESS_SHARE = 1 / 3  # of the loss of an episode: its labels' names are hidden


@dataclass(frozen=True)
class LinearSettings(MetricSettings):
    """Settings of the linear method."""

    size: int = 256
    """Length of a span's vector."""
    hidden: int = 384
    """Width of the layer between word vectors and span vectors, and between names and priors."""
    longest: int = 12
    """Maximum length of a candidate span, in words; marked spans may be longer."""

    def __post_init__(self) -> None:
        if min(self.size, self.hidden, self.longest) < 1:
            raise ConfigError(
                f"size, hidden and longest must be at least 1; found {self.size}, {self.hidden} and {self.longest}"
            )


@dataclass(frozen=True)
class LinearMemory:
    """A head fitted to a support set."""

    labels: tuple[str, ...]
    head: LinearHead
    lexicon: Lexicon
    longest: int
    """Maximum length of a query's candidate spans, in words."""


class Linear(MetricMethod[LinearSettings, LinearMemory, SpanScores]):
    """Penalised logistic regression on span vectors, one per label.

    A label's weights start from a vector made from its name and are fitted to the support's spans; with no example,
    the name alone scores. Tagging fits the head in numpy (``spanshot.heads``), training fits its differentiable twin.
    """

    name = "linear"
    Settings = LinearSettings
    reads_label_names = True
    needs_examples = False

    def __init__(self, encoder: Encoder, settings: LinearSettings) -> None:
        super().__init__(encoder, settings)
        self.spans = UnitSpans(encoder.size, settings.size, settings.hidden)
        self.names = NamePrior(encoder.size, settings.size, settings.hidden)
        self.head = HeadSettings()

    # Tagging

    def head_settings(self) -> PlainHeadSettings:
        """Return the trained settings of the head as numbers."""
        return self.head.plain()

    def prior(self, names: Sequence[str | None]) -> Prior:
        """Return the prior of each label; one without a name, or with an empty one, has the prior of unknown labels."""
        weights, bias = (part.detach().cpu().numpy().copy() for part in self.names.nameless(len(names)))
        named = [number for number, name in enumerate(names) if name]
        if named:
            means = self.encoder.means([_name_sentence(names[number] or "") for number in named])
            name_weights, name_bias = self.names(means)
            weights[named], bias[named] = name_weights.detach().cpu().numpy(), name_bias.detach().cpu().numpy()
        return Prior(weights, bias, tuple(bool(name) for name in names))

    def span_vectors(self, sentences: Sequence[Sentence], bounds: Sequence[Bounds]) -> list[Floats]:
        """Return the vectors of the spans at ``bounds`` of each sentence. [spans, size] each"""
        vectors = self._vectors(self.encoder(sentences), bounds).detach().cpu().numpy()
        return np.split(vectors, np.cumsum([len(pairs) for pairs in bounds])[:-1])

    @override
    def remember(self, support: SupportSet) -> LinearMemory:
        labels = support.labels
        shown = {span.label for sentence in support.sentences for span in sentence.spans}
        prior = self.prior([name_to_encode(label, name, label in shown) for label, name in support.label_names.items()])
        rows = []
        for sentence, bounds, vectors in self._support_spans(support):
            marked, rejected, covered = annotation(sentence, bounds, labels)
            rows.append(choose_rows(vectors, marked, prior, rejected=rejected, covered=covered))
        head = fit(rows, prior, self.head_settings())
        lexicon = Lexicon(marked_spans(support.sentences, labels), len(labels))
        return LinearMemory(labels, head, lexicon, self.settings.longest)

    @override
    def finetuned(self, support: SupportSet, progress: Progress | None = None) -> Linear | None:
        """Return a fine-tuned copy, or the method itself if that is better on held-out examples."""
        return finetuned_on_folds(self, support, FoldFinetuning(), progress)

    @override
    def scores(self, memory: LinearMemory, sentences: Sequence[Sentence]) -> list[SpanScores]:
        bounds = [bounds_up_to(len(sentence.words), memory.longest) for sentence in sentences]
        return [
            self._sentence_scores(memory, sentence, pairs, vectors)
            for sentence, pairs, vectors in zip(sentences, bounds, self.span_vectors(sentences, bounds), strict=True)
        ]

    def _sentence_scores(self, memory: LinearMemory, sentence: Sentence, bounds: Bounds, vectors: Floats) -> SpanScores:
        logits = memory.head.scores(vectors, memory.lexicon.matches(sentence.words, bounds))
        return SpanScores(memory.labels, bounds, np.concatenate([np.zeros((len(logits), 1), np.float32), logits], 1))

    @override
    def decoder(self, support: SupportSet) -> IndependentDecoder:
        return IndependentDecoder(Greedy())

    @override
    def nested_decoder(self) -> IndependentDecoder:
        return IndependentDecoder(NESTED)

    @override
    def with_longest(self, memory: LinearMemory, words: int) -> LinearMemory:
        return replace(memory, longest=max(words, self.settings.longest))

    def _support_spans(self, support: SupportSet) -> Iterator[tuple[Sentence, Bounds, Floats]]:
        """Encode the support in parts; yield each sentence, its candidates and their vectors."""
        batch: list[Sentence] = []
        for sentence in [*support.sentences, None]:
            longest = max(len(batched.words) for batched in (*batch, sentence) if batched) if batch or sentence else 0
            if batch and (sentence is None or longest * (len(batch) + 1) > WORDS_AT_ONCE):
                bounds = [candidates(batched, self.settings.longest) for batched in batch]
                yield from zip(batch, bounds, self.span_vectors(batch, bounds), strict=True)
                batch = []
            if sentence is not None:
                batch.append(sentence)

    def _vectors(self, words: WordVectors, bounds: Sequence[Bounds]) -> Tensor:
        """Return the vectors of all spans, sentence after sentence. [spans, size]"""
        offsets = np.cumsum([0, *words.lengths[:-1]])
        shifted = np.concatenate([pairs + offset for pairs, offset in zip(bounds, offsets, strict=True)])
        at = torch.from_numpy(shifted).to(words.first.device)
        vectors: Tensor = self.spans(words.first, words.last, at[:, 0], at[:, 1])
        return vectors

    # Training

    @override
    def episode_loss(self, episode: Episode) -> Tensor:
        """Return the loss by names alone, plus that by examples with and without names."""
        labels = episode.support.labels
        sentences = [*episode.support.sentences, *episode.query]
        n_support = len(episode.support.sentences)
        spans, named = self._pool_spans(sentences, self.names_of(episode.support))
        losses = [
            self._part_loss(spans, range(len(labels)), range(n_support), range(n_support, len(sentences)), names)
            for names in (named, self._nameless(len(labels)))
        ]
        by_examples = (1 - NAMELESS_SHARE) * losses[0] + NAMELESS_SHARE * losses[1]
        return names_loss(spans, named, len(sentences)) + by_examples

    @override
    def pool_loss(self, pool: Pool) -> Tensor:
        """Return the loss by names alone over all sentences, plus the mean loss of the pool's episodes."""
        column = {label: number for number, label in enumerate(pool.names)}
        spans, named = self._pool_spans(pool.sentences, pool.names)
        losses = []
        for part in pool.episodes:
            columns = [column[label] for label in part.labels]
            names = self._nameless(len(columns))
            if part.named:
                names = Names(named.weights[columns], named.bias[columns], named=True)
            losses.append(self._part_loss(spans, columns, part.support, part.query, names))
        by_examples = torch.stack(losses).mean()
        return names_loss(spans, named, len(pool.sentences)) + by_examples if pool.informative else by_examples

    def _part_loss(
        self, spans: PoolSpans, columns: Sequence[int], support: Sequence[int], query: Sequence[int], names: Names
    ) -> Tensor:
        generator = None if self.training else torch.Generator().manual_seed(0)
        labels = torch.tensor(list(columns), device=spans.marked.device)
        return episode_loss(self.head, spans, labels, support, query, names, generator)

    def _pool_spans(self, sentences: Sequence[Sentence], names: Mapping[str, str]) -> tuple[PoolSpans, Names]:
        """Encode sentences and the names of labels in one pass."""
        columns = {label: number for number, label in enumerate(names)}
        bounds = [candidates(sentence, self.settings.longest) for sentence in sentences]
        pairs = zip(sentences, bounds, strict=True)
        marked = np.concatenate([marks(sentence, candidate_bounds, columns) for sentence, candidate_bounds in pairs])
        owner = np.repeat(np.arange(len(sentences)), [len(candidate_bounds) for candidate_bounds in bounds])
        words, means = self.encoder.without_padding(sentences, [_name_sentence(name) for name in names.values()])
        vectors = self._vectors(words, bounds)
        device = vectors.device
        spans = PoolSpans(
            vectors,
            torch.from_numpy(marked).to(device, vectors.dtype),
            torch.from_numpy(owner).to(device),
            torch.from_numpy(text_numbers(sentences, bounds)).to(device),
        )
        weights, bias = self.names(means)
        return spans, Names(weights, bias, named=True)

    def _nameless(self, labels: int) -> Names:
        return Names(*self.names.nameless(labels), named=False)


def _name_sentence(name: str) -> Sentence:
    return Sentence(tuple(name.split()) or ("?",))
