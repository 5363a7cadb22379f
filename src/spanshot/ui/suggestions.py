"""Suggestions for all texts of a project, updated after each action.

Only the head is fitted anew; the vectors of the texts are kept. Block by block, one matrix product finds the spans
that may reach a threshold; these go through the same decision as in `Tagger`, so the results are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spanshot.engine.spans import SpanVectors, candidate_widths
from spanshot.errors import ConfigError
from spanshot.examples.held_out import HeldOut
from spanshot.heads.linear import Floats
from spanshot.learner import LinearLearner
from spanshot.linear_tagger import Choice, LinearTagger
from spanshot.model import Model
from spanshot.tagger import Tagger, merge
from spanshot.types import Entity, LearnOptions, ScoredSpan, Span, SupportSet
from spanshot.ui.vectors import BLOCK, ROOM, Block, Halves, VectorStore, Words
from spanshot.words import Word

MOST_HELD_OUT = 40
"""Texts in progress that are tagged by a tagger that has not learned them."""
_SLACK = 1e-3  # for rounding


class Texts:
    """Texts, their words, and the windows in which they are read."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._key: tuple[object, ...] | None = None
        self.words: list[Sequence[Word]] = []
        self.windows: list[Sequence[tuple[int, int]]] = []
        self.sentences: list[list[Words]] = []

    def cut(self, tagger: Tagger) -> None:
        """Split texts into words and windows as a tagger does; nothing happens if they were split like that."""
        longest = max((len(span) for s in tagger.support.sentences for span in s.spans), default=1)
        key = (tagger.support.cuts, tagger.by_line, tagger.options.window, max(longest, tagger.options.window // 4))
        if key != self._key:
            self._key, self.words, self.windows, self.sentences = key, [], [], []
        for text in self.texts[len(self.words) :]:
            read = tagger.read(text)
            self.words.append(read.words)
            self.windows.append(read.windows)
            self.sentences.append([sentence.words for sentence in read.sentences()])


class Suggester:
    """Learns examples and suggests entities for texts."""

    def __init__(self, model: Model, texts: Iterable[str] = (), room: int = ROOM) -> None:
        if not isinstance(model.method, LinearLearner):
            raise ConfigError(
                "this model cannot be used here; use the model in the package, or one of `spanshot export`"
            )
        self.model = model
        self.store = VectorStore(model.method.encoder, room)
        learner = model.method
        remembering = LinearLearner(self.store, learner.settings, learner.digest, learner.files, learner.dtype)
        self._learning = replace(model, method=remembering)
        self._widths = candidate_widths((), learner.settings.longest)
        self.store.set_widths(self._widths)
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
            own = positions[begin : begin + BLOCK]
            wanted = list(dict.fromkeys(words for at in own for words in self.texts.sentences[at]))
            found = self._spans(wanted)
            for at in own:
                yield at, self._entities(at, found)

    def _spans(self, sentences: Sequence[Words]) -> dict[Words, list[ScoredSpan]]:
        """Return the spans of sentences; those that have none may be missing."""
        store, linear = self.store, self._linear
        unknown = [words for words in sentences if words not in store]
        by_block: dict[int, tuple[Block, list[int]]] = {}
        if unknown:
            block = store.add(unknown)
            by_block[id(block)] = (block, list(range(len(unknown))))
        for words in set(sentences) - set(unknown):
            place = store.place(words)
            assert place is not None
            by_block.setdefault(id(place[0]), (place[0], []))[1].append(place[1])
        found: dict[Words, list[ScoredSpan]] = {}
        for block, wanted in by_block.values():
            found |= self._of_block(linear, block, sorted(wanted))
        return found

    def _of_block(self, linear: LinearTagger, block: Block, wanted: Sequence[int]) -> dict[Words, list[ScoredSpan]]:
        least = linear._map[2] - linear.head.settings.match - _SLACK  # a text that examples mark gets a bonus
        is_whole = len(wanted) > len(block.sentences) // 2
        parts = [slice(0, len(block.vectors))] if is_whole else [_rows(block, at) for at in wanted]
        rows = np.concatenate([part.start + _above(linear, block.vectors[part], least) for part in parts])
        found: dict[Words, list[ScoredSpan]] = {}
        first, last = np.searchsorted(rows, block.starts[:-1]), np.searchsorted(rows, block.starts[1:])
        for at in wanted:
            own = rows[first[at] : last[at]]
            if len(own):
                spans = SpanVectors(block.bounds[own], block.vectors[own].astype(np.float32))
                choices = linear.choose(block.sentences[at], spans)
                bounds = [spans.bounds[choice.row].tolist() for choice in choices]
                found[block.sentences[at]] = [
                    ScoredSpan(Span(start, end, linear.labels[choice.label]), choice.score)
                    for choice, (start, end) in zip(choices, bounds, strict=True)
                ]
        return found

    def _entities(self, at: int, found: dict[Words, list[ScoredSpan]]) -> list[Entity]:
        text, words = self.texts.texts[at], self.texts.words[at]
        spans = merge([found.get(own, []) for own in self.texts.sentences[at]], self.texts.windows[at])
        return [_entity(text, words, scored) for scored in spans]

    def in_progress(self, examples: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[Entity]]]:
        """Yield the entities of texts that are examples, from taggers that have not learned these texts.

        ``examples`` are pairs: a text's position, and its position among the examples. Otherwise the spans of a text
        that are not marked yet would count as none, and accepting one suggestion would remove the others.
        """
        assert self.tagger is not None
        groups = [[example] for _, example in examples]
        for (at, _), (_, tagger, _) in zip(examples, HeldOut(self.tagger).taggers(groups), strict=True):
            yield at, tagger(self.texts.texts[at])

    def why(self, text: str, start: int, end: int, label: str) -> list[tuple[str, float, int, Span | None]]:
        """Return why a span may have a label: the kind of each reason, its weight, and its example and span."""
        assert self.tagger is not None
        linear = self._linear
        read = self.tagger.read(text)
        words = read.words
        for first, last in read.windows:
            inside = [word for word in words[first:last] if start < word.end and word.start < end]
            if inside and inside[0].start <= start and inside[-1].end >= end and label in linear.labels:
                low = words.index(inside[0]) - first
                bounds = np.array([[low, low + len(inside)]])
                own = [word.text for word in words[first:last]]
                (_, spans), *_ = linear.learner.encoder.encode([own], [bounds])
                return self._reasons(own, spans, linear.labels.index(label))
        return []

    def _reasons(
        self, words: Sequence[str], spans: SpanVectors, label: int
    ) -> list[tuple[str, float, int, Span | None]]:
        linear, tagger = self._linear, self.tagger
        assert tagger is not None
        logits, matches = linear.score(words, spans)
        choice = Choice(0, label, 0.0, float(logits[0, label]), matches.get((0, label), 0.0))
        reasons: list[tuple[str, float, int, Span | None]] = []
        for evidence in linear.explain(spans.vectors[0], choice):
            if evidence.span is None:
                reasons.append((evidence.kind, evidence.weight, -1, None))
                continue
            number, first = tagger.pieces[evidence.sentence] if tagger.pieces else (evidence.sentence, 0)
            shown = Span(first + evidence.span.start, first + evidence.span.end, evidence.span.label)
            reasons.append((evidence.kind, evidence.weight, number, shown))
        return reasons


def _above(linear: LinearTagger, vectors: Halves, least: Floats) -> npt.NDArray[np.int64]:
    """Return the rows whose logit for some label is high enough."""
    return np.flatnonzero((linear.head.scores(vectors.astype(np.float32)) >= least).any(1))


def _rows(block: Block, at: int) -> slice:
    return slice(int(block.starts[at]), int(block.starts[at + 1]))


def _entity(text: str, words: Sequence[Word], scored: ScoredSpan) -> Entity:
    start, end = words[scored.span.start].start, words[scored.span.end - 1].end
    return Entity(text[start:end], scored.span.label, start, end, scored.score)
