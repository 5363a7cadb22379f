"""From a trained model and a few examples to entities in raw text."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from spanshot.allocator import give_back_memory
from spanshot.checkpoint import read_checkpoint, write_checkpoint
from spanshot.decode.conflicts import NESTED
from spanshot.decode.decoders import SpanDecoder
from spanshot.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    EpisodeError,
    SpanshotError,
    SpanshotWarning,
    did_you_mean,
)
from spanshot.formats.examples import examples_of
from spanshot.json_text import JsonValue
from spanshot.research import checkpoint
from spanshot.research.learning.support_finetuning import SupportFinetuning, finetuned
from spanshot.research.methods import Method, MetricMethod, MetricTagger, SentenceTagger
from spanshot.research.model_settings import ModelSettings
from spanshot.research.nn.kernels import no_kernels_per_shape
from spanshot.tagger_file import TAGGER, parse_tagger_json, parse_threshold, tagger_json
from spanshot.types import Entity, Reason, ScoredSpan, Sentence, SupportSet
from spanshot.windows import merge, windows_over
from spanshot.words import Word, words_of

TEXTS_AHEAD = 8
"""Batches of texts that :meth:`Tagger.pipe` reads before it gives the first answer."""
WORDS_AT_ONCE = 256
"""Most words, with padding, that are tagged at once. It bounds the memory that a batch of long texts takes; of 128 to
1,024, it was also the fastest (docs/results.md)."""

Progress = Callable[[int, int], None]
"""Called with the number of steps done and of all."""
Shown = SupportSet | Path | str | Iterable[str | Mapping[str, Any] | Sentence]
"""Examples in any of the forms that people have them in."""


def _sentences(examples: Shown) -> tuple[Sentence, ...]:
    if isinstance(examples, SupportSet):
        return examples.sentences
    read = examples_of(examples)
    if read.dropped:
        warnings.warn(read.dropped.summary(), SpanshotWarning, stacklevel=3)
    return read.sentences


@dataclass(frozen=True)
class Model:
    """A trained method. It can learn any number of label sets; each gives a predictor of its own."""

    method: Method
    settings: ModelSettings

    def learn(
        self,
        examples: Shown,
        *,
        nested: bool = False,
        threshold: float | Mapping[str, float] = 0.0,
        finetune: bool = False,
        progress: Progress | None = None,
    ) -> Tagger:
        """What finds the labels that are marked in the examples.

        Examples are lines of inline markup, ``[Apple](ORG) grew.``, records as ``{"text", "entities"}``, sentences, a
        file of any of the formats that are read, or a support set. What cannot be used of them is told by a warning.
        With ``nested``, entities may lie within others. Only entities with a score of at least ``threshold`` are
        given: one for all labels, or one for each (0 for those that are not named). ``finetune`` takes some seconds to
        practise on the examples first, on a copy of the model; ``progress`` is then called with steps done and all.
        """
        support = examples if isinstance(examples, SupportSet) else SupportSet.of(_sentences(examples))
        finetuned = self._finetuned(support, progress) if finetune else None
        tagger: SentenceTagger = (finetuned or self).method.fit(support)
        if isinstance(tagger, MetricTagger):
            longest = max(len(span) for sentence in support.sentences for span in sentence.spans)
            tagger = replace(tagger, explain=True).reaching(longest)
        if nested:
            tagger = _nested(tagger, self.method)
        return Tagger(tagger, support, threshold=threshold, nested=nested, model=self, finetuned=finetuned)

    def _finetuned(self, support: SupportSet, progress: Progress | None) -> Model:
        if not isinstance(self.method, MetricMethod):
            raise ConfigError(f"{self.method.name} always fine-tunes; leave `finetune` out")
        learner = finetuned(self.method, support, SupportFinetuning(), progress)
        if learner is self.method:
            warnings.warn(
                f"fine-tuning skipped: it needs about {SupportFinetuning().least_shots:g} examples per label",
                SpanshotWarning,
                stacklevel=4,
            )
        return replace(self, method=learner)


def _nested(tagger: SentenceTagger, method: Method) -> SentenceTagger:
    if isinstance(tagger, MetricTagger) and isinstance(tagger.decoder, SpanDecoder):
        return replace(tagger, decoder=SpanDecoder(NESTED))
    raise ConfigError(f"{method.name} cannot find nested entities: it gives each word one tag")


@dataclass(frozen=True)
class Tagger:
    """Finds the entities of one label set in raw text. A value: what changes it gives a new one.

    A text of more than ``window`` words is read in windows that share ``overlap`` words. What two windows see
    is taken from the one in which it stands farther from the edge, so nothing is cut off or found twice.
    """

    tagger: SentenceTagger
    support: SupportSet
    window: int = 128
    overlap: int = 32
    threshold: float | Mapping[str, float] = 0.0
    nested: bool = False
    model: Model | None = None
    finetuned: Model | None = None
    """The copy of the model that has finetuned on the examples, if it was asked to."""

    def __post_init__(self) -> None:
        limits = self.threshold.values() if isinstance(self.threshold, Mapping) else [self.threshold]
        if not all(0 <= limit <= 1 for limit in limits):
            raise ConfigError(f"a threshold must lie in 0..1; found {self.threshold}")
        for label in self.threshold if isinstance(self.threshold, Mapping) else ():
            self._known(label)

    @property
    def labels(self) -> tuple[str, ...]:
        """What it looks for."""
        return self.support.labels

    def __call__(self, text: str) -> list[Entity]:
        """The entities, in the order of the text; ``text[entity.start:entity.end] == entity.text``."""
        return next(self.pipe([text]))

    def pipe(self, texts: Iterable[str], batch_size: int = 32) -> Iterator[list[Entity]]:
        """The entities of each text, in order, at constant memory: any iterable will do, also an endless one.

        Some batches are read ahead, so that texts of like length are tagged together.
        """
        if batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1; found {batch_size}")
        ahead = iter(texts)
        at_once = batch_size * TEXTS_AHEAD
        while chunk := list(islice(ahead, at_once)):
            yield from self._tag(chunk, batch_size)
            if len(chunk) == at_once:  # a long stream
                give_back_memory()

    def add(self, examples: Shown) -> Tagger:
        """One that has seen these examples as well."""
        return self._relearned(SupportSet.of([*self.support.sentences, *_sentences(examples)]))

    def remove(self, label: str) -> Tagger:
        """One that does not look for the label; its examples stay, unmarked."""
        self._known(label)
        if len(self.labels) == 1:
            raise EpisodeError(f"{label!r} is the only label; there would be nothing left to look for")
        others = [other for other in self.labels if other != label]
        return self._relearned(SupportSet.of(sentence.with_labels(others) for sentence in self.support.sentences))

    def save(self, folder: str | Path) -> None:
        """Write model, examples and settings into a folder, for :func:`load`; what was there is replaced."""
        model = self.model_or_error()
        options: dict[str, JsonValue] = {
            "nested": self.nested,
            "threshold": self.threshold if isinstance(self.threshold, float | int) else dict(self.threshold),
            "finetune": self.finetuned is not None,
            "window": self.window,
            "overlap": self.overlap,
        }
        files = checkpoint.model_files(model.method, model.settings)
        if self.finetuned is not None:
            files[checkpoint.TUNED] = checkpoint.tuned_weights(model.method, self.finetuned.method)
        files[TAGGER] = tagger_json(self.support, options).encode()
        write_checkpoint(folder, "tagger", files)

    def model_or_error(self) -> Model:
        """The model that has learned this."""
        if self.model is None:
            raise ConfigError("this predictor was made of a bare tagger; only what a model has learned can do this")
        return self.model

    def _relearned(self, support: SupportSet) -> Tagger:
        threshold = self.threshold
        if isinstance(threshold, Mapping):
            threshold = {label: limit for label, limit in threshold.items() if label in support.labels}
        finetune = self.finetuned is not None
        learned = self.model_or_error().learn(support, nested=self.nested, threshold=threshold, finetune=finetune)
        return replace(learned, window=self.window, overlap=self.overlap)

    def _known(self, label: str) -> None:
        if label not in self.labels:
            raise EpisodeError(
                f"unknown label {label!r}; there are {', '.join(self.labels)}{did_you_mean(label, self.labels)}"
            )

    def _tag(self, texts: Sequence[str], batch_size: int) -> Iterator[list[Entity]]:
        words = [words_of(text) for text in texts]
        windows = [windows_over(len(own), self.window, self.overlap) if own else [] for own in words]
        pieces = [
            (number, Sentence(tuple(word.text for word in words[number][start:end])))
            for number, own in enumerate(windows)
            for start, end in own
        ]
        order = sorted(range(len(pieces)), key=lambda at: len(pieces[at][1]))
        found: list[list[ScoredSpan]] = [[] for _ in pieces]
        for batch in _batches(order, [len(sentence) for _, sentence in pieces], batch_size):
            with no_kernels_per_shape():
                tagged = self.tagger([pieces[at][1] for at in batch])
            for at, own in zip(batch, tagged, strict=True):
                found[at] = own
        answers = iter(found)
        for text, own_words, own_windows in zip(texts, words, windows, strict=True):
            spans = merge(list(islice(answers, len(own_windows))), own_windows) if own_windows else []
            entities = (self._entity(text, own_words, scored) for scored in spans)
            yield [entity for entity in entities if entity.score >= self._limit(entity.label)]

    def _entity(self, text: str, words: Sequence[Word], scored: ScoredSpan) -> Entity:
        start, end = words[scored.span.start].start, words[scored.span.end - 1].end
        reasons = []
        for evidence in scored.because:
            example = self.support.sentences[evidence.sentence]
            marked = example.text_of(evidence.span.start, evidence.span.end)
            reasons.append(Reason(marked, example.text_of(0, len(example)), evidence.weight))
        return Entity(text[start:end], scored.span.label, start, end, scored.score, tuple(reasons))

    def _limit(self, label: str) -> float:
        return self.threshold.get(label, 0.0) if isinstance(self.threshold, Mapping) else self.threshold


def _batches(order: Sequence[int], lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """The numbers in ``order``, from short to long, so many at a time and no more words than can be tagged at once."""
    batch: list[int] = []
    for at in order:
        if len(batch) == most or (batch and (len(batch) + 1) * lengths[at] > WORDS_AT_ONCE):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


@lru_cache(maxsize=1)
def embedded_model() -> Model:
    """The model that comes with the package; it is read once."""
    return load_model(checkpoint.embedded_folder())


def learn(
    examples: Shown,
    *,
    nested: bool = False,
    threshold: float | Mapping[str, float] = 0.0,
    finetune: bool = False,
    progress: Progress | None = None,
    model: Model | None = None,
) -> Tagger:
    """What finds the entities that are marked in the examples, by the model that comes with the package.

    See :meth:`Model.learn`.
    """
    own = model or embedded_model()
    return own.learn(examples, nested=nested, threshold=threshold, finetune=finetune, progress=progress)


def load_model(folder: str | Path) -> Model:
    """The model in a checkpoint folder, or the best one of a run folder."""
    found = checkpoint.load(folder)
    return Model(found.method, found.settings)


def load(folder: str | Path) -> Tagger:
    """What :meth:`Tagger.save` wrote: it finds the same entities as the one that was saved."""
    saved = read_checkpoint(Path(folder), [TAGGER, checkpoint.TUNED, *checkpoint.MODEL_FILES])
    if saved.kind != "tagger":
        raise CheckpointError(
            f"{folder}: holds a trained model, not a tagger; use spanshot.load_model(folder).learn(examples)"
        )
    opened = checkpoint.open_model(saved)
    model = Model(opened.method, opened.settings)
    tuned = checkpoint.open_tuned(saved, opened.method)
    finetuned = replace(model, method=tuned) if tuned is not None else None
    try:
        support, options = parse_tagger_json(saved.text(TAGGER))
        nested, threshold = options.value("nested"), parse_threshold(options.value("threshold"))
        window, overlap = options.integer("window"), options.integer("overlap")
        if not isinstance(nested, bool) or options.value("finetune") is not (finetuned is not None):
            raise DataError("the options contradict the files of the checkpoint")
        if not 0 <= overlap < window <= 100_000:
            raise DataError("a window must be longer than its overlap, and at most 100,000 words")
        learned = (finetuned or model).learn(support, nested=nested, threshold=threshold)
        return replace(learned, window=window, overlap=overlap, model=model, finetuned=finetuned)
    except SpanshotError as problem:
        raise saved.error(TAGGER, str(problem)) from None
