"""Suggestions for all texts of a project, updated after each action.

Only the head is fitted anew; the vectors of the texts are kept. Block by block, one matrix product finds the spans
that may reach a threshold; these go through the same decision as in `Tagger`, so the results are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spanshot.engine.spans import SpanVectors, candidate_widths
from spanshot.errors import ConfigError
from spanshot.examples.held_out import HeldOut
from spanshot.heads.blas import one_thread
from spanshot.heads.linear import Floats
from spanshot.learner import LinearLearner
from spanshot.linear_tagger import Choice, LinearTagger
from spanshot.model import Model
from spanshot.tagger import ReadText, Tagger
from spanshot.types import Entity, Learner, LearnOptions, ScoredSpan, Span, SupportSet
from spanshot.ui.vectors import BLOCK, ROOM, Block, Halves, VectorStore, Words

MOST_HELD_OUT = 40
"""Texts in progress that are tagged by a tagger that has not learned them."""
_SLACK = 1e-3  # for rounding


@dataclass(frozen=True, slots=True)
class SpanReason:
    """A part of the reason for a suggestion."""

    kind: str
    """That of `Evidence`."""
    weight: float
    source: tuple[int, Span] | None
    """The number of the example it comes from, and the span there."""


class Texts:
    """Texts, and how a tagger reads them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.read: list[ReadText] = []
        self.sentences: list[list[Words]] = []
        """The words of each window of each text."""
        self._tagger: Tagger | None = None

    def cut(self, tagger: Tagger) -> None:
        """Split texts into words and windows as a tagger does; nothing happens if they were split like that."""
        if self._tagger is None or not tagger.reads_like(self._tagger):
            self.read, self.sentences = [], []
        self._tagger = tagger
        for text in self.texts[len(self.read) :]:
            read = tagger.read(text)
            self.read.append(read)
            self.sentences.append([sentence.words for sentence in read.sentences()])


class Suggester:
    """Learns examples and suggests entities for texts, with a model or a fine-tuned copy of its method."""

    def __init__(self, model: Model, texts: Iterable[str] = (), room: int = ROOM, tuned: Learner | None = None) -> None:
        learner = tuned or model.method
        if not isinstance(learner, LinearLearner):
            raise ConfigError(
                "this model cannot be used here; use the model in the package, or one of `spanshot export`"
            )
        self.model = model
        self.store = VectorStore(learner.encoder, room)
        remembering = LinearLearner(self.store, learner.settings, learner.digest, learner.files, learner.dtype)
        self._learning = replace(model, method=remembering)
        self.store.set_widths(candidate_widths((), learner.settings.longest))
        self.texts = Texts(list(texts))
        self.tagger: Tagger | None = None

    def add(self, texts: Iterable[str]) -> None:
        """Add texts after the others."""
        self.texts.texts += texts

    def learn(self, support: SupportSet, options: LearnOptions) -> Tagger:
        """Learn examples and return a tagger, which later calls of other methods use."""
        known = self.tagger.sentence_tagger if self.tagger else None
        self.tagger = self._learning.learn_support(support, options, known=known)
        self.store.set_widths(self._linear.widths)
        self.texts.cut(self.tagger)
        return self.tagger

    @property
    def _linear(self) -> LinearTagger:
        assert self.tagger is not None
        linear = self.tagger.sentence_tagger
        assert isinstance(linear, LinearTagger)
        return linear

    def suggestions(self, positions: Sequence[int]) -> Iterator[tuple[int, list[Entity]]]:
        """Yield the entities of the texts at these positions, in any order. Texts without an entity come too."""
        assert self.tagger is not None
        for begin in range(0, len(positions), BLOCK):
            some = positions[begin : begin + BLOCK]
            spans_of = self._spans(list(dict.fromkeys(words for at in some for words in self.texts.sentences[at])))
            for at in some:
                spans = [spans_of.get(words, []) for words in self.texts.sentences[at]]
                yield at, self.tagger.entities(self.texts.read[at], spans)

    def _spans(self, sentences: Sequence[Words]) -> dict[Words, list[ScoredSpan]]:
        """Return the spans of sentences; those that have none may be missing."""
        store = self.store
        unknown = [words for words in sentences if words not in store]
        by_block: dict[int, tuple[Block, list[int]]] = {}
        if unknown:
            block = store.add(unknown)
            by_block[id(block)] = (block, list(range(len(unknown))))
        for words in set(sentences) - set(unknown):
            block, at = store.place(words)
            by_block.setdefault(id(block), (block, []))[1].append(at)
        spans_of: dict[Words, list[ScoredSpan]] = {}
        for block, positions in by_block.values():
            spans_of |= self._of_block(block, sorted(positions))
        return spans_of

    def _of_block(self, block: Block, positions: Sequence[int]) -> dict[Words, list[ScoredSpan]]:
        """Return the spans of the sentences at these positions of a block."""
        linear = self._linear
        least = linear.least_logits - linear.head.settings.match - _SLACK  # a text that examples mark gets a bonus
        is_whole = len(positions) > len(block.sentences) // 2
        parts = [slice(0, len(block.vectors))] if is_whole else [block.rows(at) for at in positions]
        high = np.concatenate([part.start + _above(linear, block.vectors[part], least) for part in parts])
        first, last = np.searchsorted(high, block.starts[:-1]), np.searchsorted(high, block.starts[1:])
        spans_of: dict[Words, list[ScoredSpan]] = {}
        for at in positions:
            rows = high[first[at] : last[at]]
            if len(rows):
                words = block.sentences[at]
                spans_of[words] = linear.decode(words, block.spans(rows), explain=False)
        return spans_of

    def in_progress(self, examples: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[Entity]]]:
        """Yield the entities of texts that are examples, from taggers that have not learned these texts.

        ``examples`` are pairs: a text's position, and its position among the examples. Otherwise the spans of a text
        that are not marked yet would count as none, and accepting one suggestion would remove the others.
        """
        assert self.tagger is not None
        groups = [[example] for _, example in examples]
        for (at, _), (_, tagger, _) in zip(examples, HeldOut(self.tagger).taggers(groups), strict=True):
            yield at, tagger(self.texts.texts[at])

    def why(self, text: str, start: int, end: int, label: str) -> list[SpanReason]:
        """Return why a span may have a label, weightiest reason first; none if nothing is known about it."""
        assert self.tagger is not None
        linear = self._linear
        read = self.tagger.read(text)
        for first, last in read.windows:
            window = read.words[first:last]
            inside = [at for at, word in enumerate(window) if start < word.end and word.start < end]
            if inside and window[inside[0]].start <= start and window[inside[-1]].end >= end and label in linear.labels:
                words = [word.text for word in window]
                (_, spans), *_ = linear.learner.encoder.encode([words], [np.array([[inside[0], inside[-1] + 1]])])
                return self._reasons(words, spans, linear.labels.index(label))
        return []

    def _reasons(self, words: Sequence[str], spans: SpanVectors, label: int) -> list[SpanReason]:
        """Return the reasons for the label of the first span."""
        assert self.tagger is not None
        logits, matches = self._linear.score(words, spans)
        choice = Choice(0, label, 0.0, float(logits[0, label]), matches.get((0, label), 0.0))
        terms = self._linear.explain(spans.vectors[0], choice)
        return [SpanReason(term.kind, term.weight, self.tagger.source_of(term)) for term in terms]


@one_thread
def _above(linear: LinearTagger, vectors: Halves, least: Floats) -> npt.NDArray[np.int64]:
    """Return the rows whose logit for some label is high enough."""
    return np.flatnonzero((linear.head.scores(vectors.astype(np.float32)) >= least).any(1))
