"""The model: learns the labels marked in a few examples and returns a tagger."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from spanshot import saved_tagger
from spanshot.checkpoint import checkpoint_in, packaged_folder
from spanshot.errors import ConfigError, InputError, SpanshotWarning
from spanshot.formats.examples import ExampleSource, to_sentences
from spanshot.tagger import Tagger, names_of
from spanshot.types import Learner, LearnOptions, Progress, Sentence, SentenceTagger, Span, SupportSet
from spanshot.words import LINE_BREAK, boundary, line_starts, windows

AS_DEFAULT = LearnOptions()
Threshold = float | Mapping[str, float] | None


@dataclass(frozen=True, repr=False, eq=False)
class Model:
    """A trained method. It can learn any number of label sets; each gives a tagger of its own.

    Two models are equal if they have the same method, settings and weights.
    """

    method: Learner
    settings: object = None
    """The settings of a method on the upper floor; they are saved with it."""

    def __repr__(self) -> str:
        return f"Model({self.method.name!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        if self.method is other.method:
            return True
        equals: Callable[[object], bool] | None = getattr(self.method, "equals", None)
        return equals is not None and self.settings == other.settings and equals(other.method)

    def __hash__(self) -> int:
        return hash(self.method.name)

    def learn(
        self,
        examples: ExampleSource = (),
        *,
        labels: Iterable[str] | Mapping[str, str] = (),
        nested: bool = False,
        threshold: Threshold = None,
        precision: float | None = None,
        finetune: bool = False,
        progress: Progress | None = None,
    ) -> Tagger:
        """Learn the labels marked in ``examples`` and return a tagger.

        Args:
            examples: Lines of inline markup (``[Apple](ORG) grew.``), records (``{"text", "entities"}``), sentences, a
                file in any supported format, or a support set. A warning says what could not be used.
            labels: Further labels, which are found by name until they have examples: ``["drug", "dose"]``. Or readable
                names or descriptions of labels: ``{"PER": "person", "GOVLAW": "governing law"}``.
            nested: Find entities within entities, and several labels of the same words.
            threshold: Return only entities with at least this score: one value, or one per label. By default, the
                model has a good one for each label.
            precision: Choose the thresholds such that about this share of the entities is right, such as 0.9. They are
                estimated by leave-one-out on the examples; a warning names labels that cannot reach it.
            finetune: Take gradient steps on the examples first, on a copy of the model. It needs about five examples
                per label and takes some seconds.
            progress: Called during fine-tuning with the number of steps done and of all steps.
        """
        if threshold is not None and precision is not None:
            raise ConfigError("give either a threshold or a target precision, not both")
        names = names_of(labels) if labels else {}
        if isinstance(examples, SupportSet):
            names = examples.label_names | names
            support = SupportSet.of(examples.sentences, names, examples.cuts) if labels else examples
        else:
            is_empty = not examples and (isinstance(examples, tuple) or (isinstance(examples, list) and bool(names)))
            support = SupportSet.of(() if is_empty else to_sentences(examples), names)
        options = LearnOptions(nested, threshold, finetune, precision=precision)
        return self.learn_support(support, options, progress)

    def learn_support(
        self,
        support: SupportSet,
        options: LearnOptions = AS_DEFAULT,
        progress: Progress | None = None,
        tuned: Learner | None = None,
        known: SentenceTagger | None = None,
    ) -> Tagger:
        """Learn a support set and return a tagger.

        A method that is already fine-tuned may be given as ``tuned``, and as ``known`` a tagger of this model that
        has learned some of the sentences.
        """
        if options.precision is not None:
            from spanshot.examples.precision import learn_with_precision

            return learn_with_precision(self, support, options)
        cut_support = self.prepared(support, options)
        learned = cut_support.learned
        if cut_support.warning:
            warnings.warn(cut_support.warning, SpanshotWarning, stacklevel=3)
        if options.finetune and tuned is None:
            tuned = self.method.finetuned(learned, progress)
            if tuned is None:
                message = "fine-tuning skipped: it needs about 5 examples per label"
                warnings.warn(message, SpanshotWarning, stacklevel=3)
        learner = tuned or self.method
        known_part = (known,) if known is not None and tuned is None and getattr(learner, "can_refit", False) else ()
        fitted = learner.fit(learned, options, *known_part)
        return Tagger(fitted, support, options, self, tuned, cut_support.by_line, cut_support.pieces)

    def finetuned(
        self, support: SupportSet, options: LearnOptions = AS_DEFAULT, progress: Progress | None = None
    ) -> Learner | None:
        """Return a copy of the method that is fine-tuned on a support set; None if the set is too small."""
        return self.method.finetuned(self.prepared(support, options).learned, progress)

    def prepared(self, support: SupportSet, options: LearnOptions) -> CutSupport:
        """Check a support set and cut its long sentences."""
        if isinstance(options.threshold, Mapping):
            options.check_labels(support.labels)
        if getattr(self.method, "needs_examples", True):
            support.check_examples()
        broken = [sentence for sentence in support.sentences if LINE_BREAK.search(sentence.text)]
        marked = (sentence.text_of(span.start, span.end) for sentence in broken for span in sentence.spans)
        by_line = not any(LINE_BREAK.search(text) for text in marked)
        learned, pieces = support, tuple[tuple[int, int], ...]()
        if broken or any(len(sentence.words) > options.window for sentence in support.sentences):
            learned, pieces = cut(support, options.window, by_line=by_line)
        odd = [
            f"{s.text[max(0, at - 12) : at].split()[-1]}|{s.text[at : at + 12].split()[0]}"
            for s in support.sentences
            for at in s.inner_boundaries()
            if not boundary(*s.text[at - 1 : at + 1])
        ]
        warning = ""
        if odd:
            warning = f"{len(odd)} marks begin or end inside a word ({odd[0]!r}); words of new texts are not cut there"
        return CutSupport(learned, by_line, pieces, warning)

    def save_tagger(self, tagger: Tagger, folder: Path, *, whole: bool = False, examples: bool = True) -> None:
        """Save a tagger, and the model if ``whole``, or if it is not the one in the package."""
        saved_tagger.save(self.method, self.settings, tagger, folder, whole=whole, examples=examples)


@dataclass(frozen=True)
class CutSupport:
    """A support set as it is learned: long sentences are cut."""

    learned: SupportSet
    by_line: bool
    """A line break ends an entity."""
    pieces: tuple[tuple[int, int], ...]
    """For each sentence, its example and first word; empty if no sentence was cut."""
    warning: str
    """Names marks that begin or end inside a word at a place where words of new texts are not cut; mostly empty."""


def cut(support: SupportSet, window: int, *, by_line: bool) -> tuple[SupportSet, tuple[tuple[int, int], ...]]:
    """Cut long examples into pieces, as long texts are when they are tagged; no entity is cut.

    Return the pieces, and the number of the example and of the first word of each.
    """
    places: list[tuple[int, int]] = []
    pieces: list[Sentence] = []
    for number, sentence in enumerate(support.sentences):
        starts = line_starts(sentence.text, sentence.offsets) if by_line else []
        if not starts and len(sentence.words) <= window:
            places.append((number, 0))
            pieces.append(sentence)
            continue
        inside = {word for span in sentence.spans for word in range(span.start + 1, span.end)}
        for first, last in pairwise([0, *starts, len(sentence.words)]):
            units = [*(word for word in range(first, last) if word not in inside), last]  # where a piece may start
            for a, b in windows([after - before for before, after in pairwise(units)], window, 0):
                start, end = units[a], units[b]
                spans, rejected = (
                    tuple(
                        Span(s.start - start, s.end - start, s.label)
                        for s in marks
                        if start <= s.start and s.end <= end
                    )
                    for marks in (sentence.spans, sentence.rejected)
                )
                places.append((number, start))
                words = sentence.words[start:end]
                pieces.append(Sentence(words, spans, rejected=rejected, annotated=sentence.annotated))
    return SupportSet(support.labels, tuple(pieces), support.names, support.cuts), tuple(places)


@lru_cache(maxsize=4)
def embedded_model(device: str | None = None, dtype: str | None = None, threads: int | None = None) -> Model:
    """Return the shipped model; it is loaded once."""
    return load_model(packaged_folder(), device, dtype=dtype, threads=threads)


def learn(
    examples: ExampleSource = (),
    *,
    labels: Iterable[str] | Mapping[str, str] = (),
    nested: bool = False,
    threshold: Threshold = None,
    precision: float | None = None,
    finetune: bool = False,
    progress: Progress | None = None,
    model: Model | None = None,
) -> Tagger:
    """Learn the labels marked in ``examples`` with the shipped model, or with ``model``, and return a tagger.

    With ``labels`` alone, entities are found by the names of the labels. See `Model.learn` for the arguments.
    """
    if model is not None and not isinstance(model, Model):
        raise InputError(f"model must be a Model; found {type(model).__name__}; use spanshot.load_model(folder)")
    model = model or embedded_model()
    return model.learn(
        examples,
        labels=labels,
        nested=nested,
        threshold=threshold,
        precision=precision,
        finetune=finetune,
        progress=progress,
    )


def load_model(
    folder: str | Path,
    device: str | None = None,
    *,
    dtype: str | None = None,
    threads: int | None = None,
    revision: str | None = None,
) -> Model:
    """Load the model in a checkpoint folder, the best one of a training run, or one on the hub.

    Args:
        folder: A folder that `spanshot export`, `spanshot train` or `Tagger.save` wrote, or ``"user/name"``.
        device: For methods on torch: its device, such as ``"cuda"``; by default the CPU.
        dtype: ``"float32"``, or ``"int8"``: about 1.4 times as fast, with slightly different results. Default:
            ``SPANSHOT_DTYPE`` or ``"float32"``.
        threads: Number of threads. Default: ``SPANSHOT_THREADS`` or the number of physical cores.
        revision: On the hub: a commit, tag or branch.
    """
    path = checkpoint_in(_local(folder, revision))
    learner, settings = saved_tagger.open_model(path, device, dtype=dtype, threads=threads)
    return Model(learner, settings)


def load(folder: str | Path, device: str | None = None, *, revision: str | None = None) -> Tagger:
    """Load a tagger that `Tagger.save` has saved. It finds the same entities as before.

    ``"user/name"`` is loaded from the hub if there is no such folder; ``revision`` is a commit, tag or branch there.
    """
    saved = saved_tagger.read(_local(folder, revision), device)
    if saved.learner is not None:
        return saved.restore(Model(saved.learner, saved.settings))
    return saved.restore(embedded_model(device) if device else embedded_model())


def _local(folder: str | Path, revision: str | None) -> Path:
    """Return the folder, or the one that a repository of the hub is downloaded to."""
    from spanshot.integrations import hub

    if isinstance(folder, str) and hub.is_hub_name(folder):
        return hub.download(folder, revision)
    if revision is not None:
        raise ConfigError(f"{folder}: is a folder; only repositories of the hub (user/name) have revisions")
    return Path(folder)
