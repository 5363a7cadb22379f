"""Leave-one-out for the linear head: all examples are encoded and fitted once, then each is held out.

The results are the same as those of learning the other examples from scratch, with the same label names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from spanshot.engine.encoder import MAX_BATCH_PIECES, SpanEncoder
from spanshot.engine.spans import Bounds, SpanVectors, candidate_widths, candidates, with_spans
from spanshot.errors import EpisodeError
from spanshot.examples.leave_one_out import ExampleResults, TaggedExample, Watch
from spanshot.examples.parts import same_words, sample_of
from spanshot.heads.held_out import leave_one_out
from spanshot.heads.lexicon import Lexicon
from spanshot.heads.linear import Floats, LinearHead, Prior
from spanshot.learner import LinearLearner
from spanshot.linear_tagger import Choice, LinearTagger, marked_spans
from spanshot.tagger import Tagger
from spanshot.types import Evidence, LearnOptions, SupportSet

if TYPE_CHECKING:
    from spanshot.model import Model

MOST_HELD_OUT = 1000
"""Maximum number of examples to hold out; of more, a sample is held out and all are learned."""
ROOM = 256_000_000
"""Maximum size of the cache of span vectors, in bytes; other sentences are encoded again."""
LOWEST_SCORE = 0.05
"""Suggestions with a lower score are not returned."""
_AT_ONCE = 1000
_SHOWN_EVERY = 25
_NEVER = 1.0  # a threshold that no score reaches


class HeldOut:
    """A tagger of all examples, from which those without some of them are derived."""

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

    def results(self, watch: Watch | None = None, limit: int = MOST_HELD_OUT) -> ExampleResults:
        """Tag each example with a tagger that learned the others.

        Examples with the same words are held out together. A label without any remaining example is
        ignored: it is neither predicted nor counted as missed.
        """
        sentences = self.tagger.support.sentences
        if not any(sentence.spans for sentence in sentences):
            raise EpisodeError("no span is marked in the examples; mark at least one, such as [Apple](ORG)")
        groups = same_words(sentences)
        if len(groups) < 2:
            raise EpisodeError("leave-one-out needs at least two examples; found one")
        chosen = set(sample_of(sentences, limit) if limit and len(sentences) > limit else range(len(sentences)))
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
        for group, group_pieces, head in zip(groups, pieces, leave_one_out(self.linear.head, pieces), strict=True):
            linear = self._linear(group_pieces, head)
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

    def _linear(self, pieces: Sequence[int], head: LinearHead) -> _HeldOutTagger:
        """Return the tagger without some of the learned sentences."""
        full = self.linear
        widths = full.widths
        longest = self._longest
        if any(len(span) > longest for piece in pieces for span in full.sentences[piece].spans):
            remaining = (s for number, s in enumerate(full.sentences) if number not in set(pieces))
            widths = candidate_widths((len(span) for s in remaining for span in s.spans), longest)
        return _HeldOutTagger(
            full.learner,
            full.labels,
            (),
            head,
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
    """A tagger with a given set of marked texts. Its entities have no `because`."""

    texts: Lexicon | None = None

    @cached_property
    def lexicon(self) -> Lexicon:
        """The texts that the remaining examples mark."""
        assert self.texts is not None
        return self.texts

    def explain(self, vector: Floats, choice: Choice) -> tuple[Evidence, ...]:
        """Return no reasons."""
        del vector, choice
        return ()


class RememberingEncoder(SpanEncoder):
    """An encoder with a cache of limited size."""

    def __init__(self, encoder: SpanEncoder, widths: tuple[int, ...], room: int = ROOM) -> None:
        self._encoder = encoder
        self._widths = widths
        self._room = room
        self._cache: dict[tuple[str, ...], SpanVectors] = {}

    def encode(
        self, sentences: Sequence[Sequence[str]], bounds: Sequence[Bounds], max_pieces: int = MAX_BATCH_PIECES
    ) -> Iterator[tuple[int, SpanVectors]]:
        """Yield the number of each sentence and the vectors of its spans."""
        missing = []
        for number, (words, sentence_bounds) in enumerate(zip(sentences, bounds, strict=True)):
            cached = self._cache.get(tuple(words))
            spans = cached and cached.of(sentence_bounds)
            if spans is None:
                missing.append(number)
            else:
                yield number, spans
        to_encode = [_joined(candidates(len(sentences[number]), self._widths), bounds[number]) for number in missing]
        for at, encoded in self._encoder.encode([sentences[number] for number in missing], to_encode, max_pieces):
            number = missing[at]
            self._room -= encoded.vectors.nbytes
            if self._room > 0:
                self._cache[tuple(sentences[number])] = encoded
            spans = encoded.of(bounds[number])
            assert spans is not None
            yield number, spans

    def encode_names(self, names: Sequence[str]) -> Prior:
        """Return the prior of each label."""
        return self._encoder.encode_names(names)


def _joined(first: Bounds, second: Bounds) -> Bounds:
    return first if first is second else with_spans(first, map(tuple, second.tolist()))


def _with_threshold(tagger: Tagger, thresholds: dict[str, float]) -> Tagger:
    """Return the tagger with other thresholds."""
    options = replace(tagger.options, threshold=thresholds)
    linear = tagger.sentence_tagger
    assert isinstance(linear, LinearTagger)
    return replace(tagger, options=options, sentence_tagger=linear.with_options(options))
