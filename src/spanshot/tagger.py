"""The tagger: text in, entities out. Each step is one call: words, windows, spans (the method), merge, entities."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from spanshot.engine.names import readable_names
from spanshot.errors import ConfigError, EpisodeError, InputError, did_you_mean
from spanshot.formats.examples import ExampleSource, to_sentences
from spanshot.types import (
    Entity,
    Evidence,
    Learner,
    LearnOptions,
    Progress,
    Reason,
    ScoredSpan,
    Sentence,
    SentenceTagger,
    Span,
    SupportSet,
)
from spanshot.words import Word, text_windows, words_of

if TYPE_CHECKING:
    from spanshot.examples.suggest import Suggestion
    from spanshot.integrations.tables import Table

Bounds = tuple[int, int]
"""The first word of a window, and one past the last."""
SHOWN_LABELS = 5


class LearningModel(Protocol):
    """The part of a model that its taggers use."""

    def learn_support(
        self,
        support: SupportSet,
        options: LearnOptions,
        progress: Progress | None = None,
        tuned: Learner | None = None,
        known: SentenceTagger | None = None,
    ) -> Tagger:
        """Learn a support set."""
        ...

    def save_tagger(self, tagger: Tagger, folder: Path, *, whole: bool = False, examples: bool = True) -> None:
        """Save one of the model's taggers."""
        ...


class Entities(list[Entity]):
    """The entities of a text, by position. A notebook shows the text with its entities highlighted."""

    def __init__(self, entities: Iterable[Entity] = (), text: str = "") -> None:
        super().__init__(entities)
        self.text = text

    def _repr_html_(self) -> str:
        from spanshot.integrations.notebook import entities_html

        return entities_html(self.text, self)


@dataclass(frozen=True, slots=True)
class ReadText:
    """A text, its words, and the windows in which it is read."""

    text: str
    words: Sequence[Word]
    windows: Sequence[Bounds]

    def sentences(self) -> Iterator[Sentence]:
        """Yield the words of each window."""
        return (Sentence(tuple(word.text for word in self.words[start:end])) for start, end in self.windows)


@dataclass(frozen=True, repr=False)
class Tagger:
    """Finds the entities of one label set in texts.

    A tagger is a value: `add` and `remove` return a new one, and two taggers are equal if they learned the
    same examples with the same model and options. It can be used from several threads, and pickled.

    A line break ends an entity, unless an example contains one within an entity. A text, or a line of it, with more
    words than ``options.window`` is read in windows that overlap by at least the longest example, so no entity is cut
    off or found twice.
    """

    sentence_tagger: SentenceTagger = field(compare=False)
    support: SupportSet
    options: LearnOptions = field(default_factory=LearnOptions)
    model: LearningModel | None = None
    tuned: Learner | None = field(default=None, compare=False)
    """The fine-tuned copy of the model's method, if there is one."""
    by_line: bool = True
    """A line break ends an entity."""
    pieces: tuple[Bounds, ...] = field(default=(), compare=False)
    """For each sentence that the method learned, its example and first word; empty if these are the examples."""
    has_examples: bool = True
    """Whether the examples are there; a tagger may have been saved without them."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the entities."""
        return self.support.labels

    def __repr__(self) -> str:
        shown = [*map(repr, self.labels[:SHOWN_LABELS]), *(["…"] if len(self.labels) > SHOWN_LABELS else [])]
        return f"Tagger(labels=[{', '.join(shown)}], examples={len(self.support.sentences)}, model={self.model!r})"

    def _repr_html_(self) -> str:
        from spanshot.integrations.notebook import tagger_html

        return tagger_html(self)

    def __call__(self, text: str) -> list[Entity]:
        """Return the entities of a text, by position; ``text[entity.start:entity.end] == entity.text``."""
        if not isinstance(text, str):
            hint = "; for several texts use tagger.pipe(texts)" if isinstance(text, Iterable) else ""
            raise InputError(f"expected a text (str); found {type(text).__name__}{hint}")
        return next(self._tag(iter([text]), 1))

    def pipe(self, texts: Iterable[str], batch_size: int = 32) -> Iterator[list[Entity]]:
        """Yield the entities of each text, in order.

        Texts are read ``batch_size`` at a time, so any iterable will do, even an endless one; memory does not grow with
        its length. Within these, sentences of like length are encoded together, at most ``options.max_batch_words``
        words at once.
        """
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise InputError(f"pipe expects an iterable of texts; found {type(texts).__name__}; try tagger(text)")
        if batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1; found {batch_size}")
        return self._tag(iter(texts), batch_size)

    def _tag(self, texts: Iterator[str], batch_size: int) -> Iterator[list[Entity]]:
        while batch := list(islice(texts, batch_size)):
            for text in batch:
                if not isinstance(text, str):
                    raise InputError(f"expected texts (str); found {type(text).__name__}")
            texts_read = [self.read(text) for text in batch]
            sentences = [sentence for read in texts_read for sentence in read.sentences()]
            spans = iter(self.sentence_tagger(sentences) if sentences else [])
            for read in texts_read:
                yield self.entities(read, [next(spans) for _ in read.windows])

    def read(self, text: str) -> ReadText:
        """Split a text into words and windows, for `entities`; a batch may hold the windows of several taggers."""
        words = words_of(text, self.support.cuts)
        room = max(self.options.window, 2 * self._overlap)
        return ReadText(text, words, text_windows(text, words, room, self._overlap, by_line=self.by_line))

    def reads_like(self, other: Tagger) -> bool:
        """Return whether another tagger splits each text into the same words and windows."""
        ours, theirs = (
            (tagger.support.cuts, tagger.by_line, tagger.options.window, tagger._overlap) for tagger in (self, other)
        )
        return ours == theirs

    def entities(self, read: ReadText, spans_of: Sequence[Sequence[ScoredSpan]]) -> Entities:
        """Return the entities of a text, given the spans found in each of its windows."""
        spans = merge(spans_of, read.windows)
        if self.options.threshold is not None:
            spans = [scored for scored in spans if scored.score >= (self.options.threshold_of(scored.span.label) or 0)]
        return Entities((self._entity(read.text, read.words, scored) for scored in spans), read.text)

    def _entity(self, text: str, words: Sequence[Word], scored: ScoredSpan) -> Entity:
        start, end = words[scored.span.start].start, words[scored.span.end - 1].end
        texts = {"name": self._names.get(scored.span.label, ""), "text": text[start:end]}
        reasons = []
        for evidence in scored.because:
            source = self.source_of(evidence)
            if source is None:
                reasons.append(Reason(texts.get(evidence.kind, ""), "", evidence.weight, evidence.kind))
                continue
            number, span = source
            example = self.support.sentences[number]
            marked, whole = example.text_of(span.start, span.end), example.text_of(0, len(example.words))
            reasons.append(Reason(marked, whole, evidence.weight, evidence.kind))
        return Entity(text[start:end], scored.span.label, start, end, scored.score, tuple(reasons))

    def source_of(self, evidence: Evidence) -> tuple[int, Span] | None:
        """Return the number of the example that evidence comes from, and the span there; None if it is no example."""
        if evidence.span is None:
            return None
        number, first = self.pieces[evidence.sentence] if self.pieces else (evidence.sentence, 0)
        return number, Span(first + evidence.span.start, first + evidence.span.end, evidence.span.label)

    @cached_property
    def _overlap(self) -> int:
        """Least number of words that windows share: no marked span is longer."""
        longest = max((len(span) for sentence in self.support.sentences for span in sentence.spans), default=1)
        return max(longest, self.options.window // 4)

    @cached_property
    def _names(self) -> dict[str, str]:
        """The readable name of each label."""
        return readable_names(self.support.label_names)

    def add(
        self,
        examples: ExampleSource = (),
        progress: Progress | None = None,
        *,
        labels: Iterable[str] | Mapping[str, str] = (),
    ) -> Tagger:
        """Return a new tagger that also uses these examples, and looks for further ``labels`` by name.

        The result is the same as learning all examples at once, with one exception: the earlier examples are not taken
        to be without the labels that are new, as nobody looked for them there.
        """
        added = [] if isinstance(examples, tuple) and not examples else list(to_sentences(examples))
        names = self.support.label_names | names_of(labels)
        lacking = set(self.support.without_examples())
        before = [label for label in self.labels if label not in lacking]
        sentences = list(self.support.sentences)
        has_first_examples = {span.label for sentence in added for span in sentence.spans} - set(before)
        if has_first_examples or names.keys() - set(self.labels):
            sentences = [replace(s, annotated=tuple(before)) if s.annotated is None else s for s in sentences]
        support = SupportSet.of([*sentences, *added], names, self.support.cuts)
        return self._model().learn_support(support, self.options, progress, known=self.sentence_tagger)

    def remove(self, label: str, progress: Progress | None = None) -> Tagger:
        """Return a new tagger that does not look for the label. Its examples stay, without their marks."""
        if label not in self.labels:
            hint = did_you_mean(label, self.labels)
            raise EpisodeError(f"unknown label {label!r}; the labels are {', '.join(self.labels)}{hint}")
        others = [other for other in self.labels if other != label]
        if not others:
            raise EpisodeError(f"{label!r} is the only label; a tagger needs at least one")
        names = {other: name for other, name in self.support.label_names.items() if other != label}
        support = SupportSet.of(
            (sentence.with_labels(others) for sentence in self.support.sentences), names, self.support.cuts
        )
        return self._model().learn_support(support, self.options.for_labels(others), progress)

    def with_options(self, options: LearnOptions) -> Tagger:
        """Return a new tagger with other options; the examples are learned anew where these need it."""
        options.check_labels(self.labels)
        if replace(self.options, threshold=options.threshold, precision=None) == options:
            change = getattr(self.sentence_tagger, "with_options", None)  # of taggers that apply thresholds themselves
            return replace(self, options=options, sentence_tagger=change(options) if change else self.sentence_tagger)
        return self._model().learn_support(self.support, options, tuned=self.tuned if options.finetune else None)

    def suggest(self, texts: Iterable[str], count: int = 10) -> list[Suggestion]:
        """Return the texts that are most worth annotating next, the best first.

        These are texts with entities whose scores are near the threshold, and that differ from one another. Texts
        without any suggestion come last; those that are among the examples are left out.
        """
        from spanshot.examples.suggest import suggest

        return suggest(self, texts, count)

    def tag_frame(
        self,
        table: Table,
        column: str = "text",
        output: str = "entities",
        *,
        because: bool = False,
        progress: bool = False,
    ) -> Table:
        """Return a data frame, Arrow table or dataset with one more column: the entities of the texts in ``column``."""
        from spanshot.integrations.tables import tag_frame

        return tag_frame(self, table, column, output, because=because, progress=progress)

    def save(self, folder: str | Path, *, whole: bool = False, examples: bool = True) -> None:
        """Save the tagger to a folder, for `spanshot.load`. A checkpoint in the folder is replaced.

        Args:
            folder: A new or empty folder, or one with a checkpoint; a folder with other files is refused.
            whole: Save the model too. Without it, a tagger of the packaged model takes kilobytes, and loading it needs
                the same model in the package, or else learns the examples anew.
            examples: Save the examples. Without them, the folder holds no text, but a loaded tagger cannot learn more
                (`add`, `remove`), and gives no bonus to texts that the examples mark.
        """
        self._saving_model().save_tagger(self, Path(folder), whole=whole, examples=examples)

    def push_to_hub(
        self,
        repository: str,
        *,
        private: bool = False,
        token: str | None = None,
        revision: str | None = None,
        message: str = "Upload a tagger",
        whole: bool = False,
        examples: bool = True,
    ) -> str:
        """Upload the tagger to the Hugging Face Hub, with a card, and return the id of the commit.

        Args:
            repository: ``user/name``; it is created if it does not exist.
            private: Create a private repository.
            token: A token of the hub. Default: the one of ``hf auth login``.
            revision: The branch to upload to; it is created if it does not exist.
            message: The message of the commit.
            whole: Upload the model too; see `save`.
            examples: Upload the examples; see `save`.
        """
        from spanshot.integrations.hub import Upload, push_tagger

        upload = Upload(repository, message, private, token, revision)
        return push_tagger(self, upload, whole=whole, examples=examples)

    def _model(self) -> LearningModel:
        if not self.has_examples:
            raise ConfigError("this tagger was saved without its examples, so it cannot learn anew or be changed")
        return self._saving_model()

    def _saving_model(self) -> LearningModel:
        if self.model is None:
            raise ConfigError("this tagger has no model; learn it with spanshot.learn or Model.learn")
        return self.model


def names_of(labels: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Return labels with their names; an empty name stands for the label itself.

    >>> names_of(["drug", "dose"]), names_of({"PER": "person"})
    ({'drug': '', 'dose': ''}, {'PER': 'person'})
    """
    if isinstance(labels, Mapping):
        return dict(labels)
    return dict.fromkeys(labels.split(",") if isinstance(labels, str) else labels, "")


def merge(spans_of: Sequence[Sequence[ScoredSpan]], bounds: Sequence[Bounds]) -> list[ScoredSpan]:
    """Merge the spans found in each window into spans of the whole text.

    A span within several windows is taken from the one in which it stands farthest from an edge. If overlapping spans
    come from different windows, the one farther from an edge of its window is kept.

    >>> from spanshot.types import Span
    >>> seen = ScoredSpan(Span(2, 4, "city"), 0.9)  # words 8 and 9
    >>> [scored.span for scored in merge([[], [seen]], [(0, 10), (6, 16)])]
    [Span(start=8, end=10, label='city')]
    """
    starts, ends = [start for start, _ in bounds], [end for _, end in bounds]
    # The edges that count: at the others, the text does not go on in the next window.
    left = [start if number and ends[number - 1] > start else -math.inf for number, start in enumerate(starts)]
    right = [end if start < end else math.inf for end, start in zip_longest(ends, starts[1:], fillvalue=math.inf)]
    candidates: list[tuple[float, int, ScoredSpan]] = []
    for number, spans in enumerate(spans_of):
        for scored in spans:
            first, last = scored.span.start + starts[number], scored.span.end + starts[number]
            holding = range(bisect_left(ends, last), bisect_right(starts, first))
            margins = [min(first - left[other], right[other] - last) for other in holding]
            if number == holding[margins.index(max(margins))]:
                moved = replace(scored, span=replace(scored.span, start=first, end=last))
                candidates.append((max(margins), number, moved))
    window_of: dict[int, int] = {}  # the window that the span at each word comes from
    kept: list[ScoredSpan] = []
    for _, number, scored in sorted(candidates, key=lambda candidate: -candidate[0]):
        places = range(scored.span.start, scored.span.end)
        if all(window_of.get(place, number) == number for place in places):
            window_of.update(dict.fromkeys(places, number))
            kept.append(scored)
    return sorted(kept, key=lambda scored: scored.span)
