"""Leave-one-out for the linear head: all examples are encoded and fitted once, then each is held out.

The results equal those of learning the other examples anew, with the same label names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spanshot.engine.encoder import MAX_BATCH_PIECES, SpanEncoder
from spanshot.engine.spans import Bounds, SpanVectors, candidate_widths, candidates, with_spans
from spanshot.errors import EpisodeError
from spanshot.examples.leave_one_out import ExampleResults, TaggedExample, Watch
from spanshot.examples.parts import same_words, sample_of
from spanshot.heads.held_out import leave_one_out
from spanshot.heads.lexicon import Lexicon
from spanshot.heads.linear import LinearHead, Prior, Scorer
from spanshot.heads.rows import Floats
from spanshot.learner import LinearLearner
from spanshot.linear_tagger import LinearTagger, marked_spans
from spanshot.tagger import Tagger
from spanshot.types import Evidence, LearnOptions, SupportSet

if TYPE_CHECKING:
    from spanshot.model import Model

MOST_HELD_OUT = 1000
"""If there are more examples, all are learned, and a sample of them is held out."""
ROOM = 256_000_000
"""Most bytes of span vectors that are kept; sentences beyond are encoded again."""
LOWEST_SCORE = 0.05
"""Suggestions with a lower score are not returned."""
_AT_ONCE = 1000
_SHOWN_EVERY = 25
_NEVER = 1.0  # a threshold that no score reaches


class HeldOut:
    """A tagger of all examples, and the taggers of all but some of them."""

    def __init__(self, tagger: Tagger) -> None:
        linear = tagger.sentence_tagger
        assert isinstance(linear, LinearTagger)
        self.tagger, self.linear = tagger, linear
        self._pieces: list[list[int]] = [[] for _ in tagger.support.sentences]  # learned sentences of each example
        for piece in range(len(linear.sentences)):
            self._pieces[tagger.pieces[piece][0] if tagger.pieces else piece].append(piece)

    @classmethod
    def of(cls, model: Model, support: SupportSet, options: LearnOptions) -> HeldOut:
        """Learn all examples and keep their vectors. The model must be one of the engine."""
        learner = model.method
        if not isinstance(learner, LinearLearner):
            raise TypeError(f"expected a model of the engine; found {model!r}")
        lengths = (len(span) for sentence in support.sentences for span in sentence.spans)
        encoder = RememberingEncoder(learner.encoder, candidate_widths(lengths, learner.settings.longest))
        remembering = LinearLearner(encoder, learner.settings, learner.digest, learner.files, learner.dtype)
        return cls(replace(model, method=remembering).learn_support(support, options))

    def results(self, watch: Watch | None = None, most: int = MOST_HELD_OUT) -> ExampleResults:
        """Tag each example with a tagger that learned the others.

        Examples with the same words are held out together. A label that is not among the remaining examples is
        neither looked for nor counted as missed.
        """
        sentences = self.tagger.support.sentences
        if not any(sentence.spans for sentence in sentences):
            raise EpisodeError("no span is marked in the examples; mark at least one, such as [Apple](ORG)")
        groups = same_words(sentences)
        if len(groups) < 2:
            raise EpisodeError("leave-one-out needs at least two examples; found one")
        chosen = set(sample_of(sentences, most) if most and len(sentences) > most else range(len(sentences)))
        groups = [group for group in groups if not chosen.isdisjoint(group)]
        tagged: list[TaggedExample] = []
        done = 0
        for begin in range(0, len(groups), _AT_ONCE):
            for group, tagger, labels in self.taggers(groups[begin : begin + _AT_ONCE]):
                lowest = {label: LOWEST_SCORE if label in labels else _NEVER for label in tagger.labels}
                any_score = _with_threshold(tagger, lowest)
                for number in sorted(chosen.intersection(group)):
                    text = sentences[number].with_text().text
                    entities, suggestions = tuple(tagger(text)), tuple(any_score(text))
                    tagged.append(TaggedExample(number, sentences[number], entities, labels, suggestions))
                done += 1
                if watch and (done % _SHOWN_EVERY == 0 or done == len(groups)):
                    watch(done, len(groups))
        return ExampleResults(tuple(sorted(tagged, key=lambda example: example.number)), len(sentences))

    def taggers(self, groups: Sequence[Sequence[int]]) -> Iterator[tuple[Sequence[int], Tagger, frozenset[str]]]:
        """Yield each group of examples, a tagger of all the others, and the labels that these mark."""
        pieces = [[piece for number in group for piece in self._pieces[number]] for group in groups]
        for group, own, scorer in zip(groups, pieces, leave_one_out(self.linear.head, pieces), strict=True):
            linear = self._linear(own, scorer)
            labels = frozenset(
                label for label, count in zip(linear.labels, linear.head.counts, strict=True) if count > 0
            )
            limits = {
                label: _NEVER if label not in labels else self.tagger.options.threshold_of(label)
                for label in linear.labels
            }
            default = linear.default_thresholds
            thresholds = {label: default[label] if limit is None else limit for label, limit in limits.items()}
            yield group, _with_threshold(replace(self.tagger, sentence_tagger=linear), thresholds), labels

    def _linear(self, pieces: Sequence[int], scorer: Scorer) -> _HeldOutTagger:
        """Return the tagger without some of the learned sentences."""
        full, head = self.linear, self.linear.head
        gone = np.sum([head.sentences[piece].marked.sum(0) for piece in pieces], 0)
        counts = tuple((np.array(head.counts) - gone).tolist())
        widths = full.widths
        longest = self._longest
        if any(len(span) > longest for piece in pieces for span in full.sentences[piece].spans):
            rest = (s for number, s in enumerate(full.sentences) if number not in set(pieces))
            widths = candidate_widths((len(span) for s in rest for span in s.spans), longest)
        return _HeldOutTagger(
            full.learner,
            full.labels,
            (),
            LinearHead(head.settings, head.prior, (), scorer, counts, head.thetas),
            full.scores,
            full.options,
            widths,
            texts=full.lexicon.without(marked_spans([full.sentences[piece] for piece in pieces], full.labels)),
        )

    @property
    def _longest(self) -> int:
        learner = self.linear.learner
        assert isinstance(learner, LinearLearner)
        return learner.settings.longest


@dataclass(frozen=True)
class _HeldOutTagger(LinearTagger):
    """A tagger whose marked texts are given. It gives no reasons."""

    texts: Lexicon | None = None

    @cached_property
    def lexicon(self) -> Lexicon:
        """The texts that the remaining examples mark."""
        assert self.texts is not None
        return self.texts

    def _because(self, vector: Floats, label: int, match: float) -> tuple[Evidence, ...]:
        del vector, label, match
        return ()


class RememberingEncoder(SpanEncoder):
    """Keeps the vectors of the sentences it has encoded, as long as there is room."""

    def __init__(self, encoder: SpanEncoder, widths: tuple[int, ...], room: int = ROOM) -> None:
        self._encoder = encoder
        self._widths = widths
        self._room = room
        self._kept: dict[tuple[str, ...], SpanVectors] = {}

    def encode(
        self, sentences: Sequence[Sequence[str]], bounds: Sequence[Bounds], max_pieces: int = MAX_BATCH_PIECES
    ) -> Iterator[tuple[int, SpanVectors]]:
        """Yield the number of each sentence and the vectors of its spans."""
        unknown = []
        for number, (words, own) in enumerate(zip(sentences, bounds, strict=True)):
            kept = self._kept.get(tuple(words))
            places = None if kept is None else _places(kept.bounds, own)
            if kept is None or places is None:
                unknown.append(number)
            else:
                yield number, SpanVectors(own, kept.vectors if len(own) == len(kept.bounds) else kept.vectors[places])
        wanted = [_joined(candidates(len(sentences[number]), self._widths), bounds[number]) for number in unknown]
        for at, spans in self._encoder.encode([sentences[number] for number in unknown], wanted, max_pieces):
            number = unknown[at]
            self._room -= spans.vectors.nbytes
            if self._room > 0:
                self._kept[tuple(sentences[number])] = spans
            places = _places(spans.bounds, bounds[number])
            assert places is not None
            yield number, SpanVectors(bounds[number], spans.vectors[places])

    def encode_names(self, names: Sequence[str]) -> Prior:
        """Return the prior of each label."""
        return self._encoder.encode_names(names)


def _joined(first: Bounds, second: Bounds) -> Bounds:
    return first if first is second else with_spans(first, map(tuple, second.tolist()))


def _places(known: Bounds, wanted: Bounds) -> Bounds | None:
    """Return the rows of ``wanted`` in ``known``; None if one is not there. Both are sorted."""
    if known is wanted:
        return np.arange(len(known))
    base = int(known.max(initial=0)) + 1
    keys, own = known @ np.array([base, 1]), wanted @ np.array([base, 1])
    if not len(own):
        return np.zeros(0, np.int64)
    if wanted.max() >= base:
        return None
    places = np.searchsorted(keys, own)
    return places if (places < len(keys)).all() and (keys[np.minimum(places, len(keys) - 1)] == own).all() else None


def _with_threshold(tagger: Tagger, thresholds: dict[str, float]) -> Tagger:
    """Return the tagger with other thresholds."""
    options = replace(tagger.options, threshold=thresholds)
    linear = tagger.sentence_tagger
    assert isinstance(linear, LinearTagger)
    return replace(tagger, options=options, sentence_tagger=linear.with_options(options))
