"""The model: learns the labels marked in a few examples and returns a tagger."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from spanshot.checkpoint import read_checkpoint, write_checkpoint
from spanshot.errors import CheckpointError, ConfigError, DataError, SpanshotError, SpanshotWarning
from spanshot.formats.examples import ExampleSource, to_sentences
from spanshot.tagger import Tagger
from spanshot.tagger_file import TAGGER, parse_tagger_json, tagger_json
from spanshot.types import LearnOptions, Progress, Sentence, Span, SupportSet
from spanshot.words import LINE_BREAK, line_starts, windows

if TYPE_CHECKING:
    from spanshot.research.checkpoint import Method, ModelSettings

AS_DEFAULT = LearnOptions()


@dataclass(frozen=True, repr=False, eq=False)
class Model:
    """A trained method. It can learn any number of label sets; each gives a tagger of its own.

    Two models are equal if they have the same method, settings and weights.
    """

    method: Method
    settings: ModelSettings

    def __repr__(self) -> str:
        return f"Model({self.method.name!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self.method is other.method or (self.settings == other.settings and self.method.equals(other.method))

    def __hash__(self) -> int:
        return hash(self.method.name)

    def learn(
        self,
        examples: ExampleSource,
        *,
        nested: bool = False,
        threshold: float | Mapping[str, float] = 0.0,
        finetune: bool = False,
        progress: Progress | None = None,
    ) -> Tagger:
        """Learn the labels marked in ``examples`` and return a tagger.

        Args:
            examples: Lines of inline markup (``[Apple](ORG) grew.``), records (``{"text", "entities"}``), sentences, a
                file in any supported format, or a support set. A warning says what could not be used.
            nested: Find entities within entities.
            threshold: Return only entities with at least this score: one value, or one per label.
            finetune: Take gradient steps on the examples first, on a copy of the model. It needs about five examples
                per label and takes some seconds.
            progress: Called during fine-tuning with the number of steps done and of all steps.
        """
        support = SupportSet.of(to_sentences(examples))
        return self.learn_support(support, LearnOptions(nested, threshold, finetune), progress)

    def learn_support(
        self,
        support: SupportSet,
        options: LearnOptions = AS_DEFAULT,
        progress: Progress | None = None,
        tuned: Method | None = None,
    ) -> Tagger:
        """Learn a support set and return a tagger. A method that is already fine-tuned may be given as ``tuned``."""
        if isinstance(options.threshold, Mapping):
            options.check_labels(support.labels)
        broken = [sentence for sentence in support.sentences if LINE_BREAK.search(sentence.text)]
        marked = (sentence.text_of(span.start, span.end) for sentence in broken for span in sentence.spans)
        by_line = not any(LINE_BREAK.search(text) for text in marked)
        learned, pieces = support, tuple[tuple[int, int], ...]()
        if broken or any(len(sentence.words) > options.window for sentence in support.sentences):
            learned, pieces = cut(support, options.window, by_line=by_line)
        if options.finetune and tuned is None:
            tuned = self.method.finetuned(learned, progress)
            if tuned is None:
                message = "fine-tuning skipped: it needs about 5 examples per label"
                warnings.warn(message, SpanshotWarning, stacklevel=3)
        return Tagger((tuned or self.method).fit(learned, options), support, options, self, tuned, by_line, pieces)

    def save_tagger(self, tagger: Tagger, folder: Path) -> None:
        """Save the model and a tagger; the weights that fine-tuning has changed are kept apart from the model's."""
        from spanshot.research import checkpoint

        files = checkpoint.model_files(self.method, self.settings)
        if tagger.options.finetune:
            files[checkpoint.TUNED] = checkpoint.tuned_weights(self.method, tagger.tuned or self.method)
        files[TAGGER] = tagger_json(tagger.support, tagger.options).encode()
        write_checkpoint(folder, "tagger", files)


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
                spans = (
                    Span(s.start - start, s.end - start, s.label) for s in sentence.spans if start <= s.start < end
                )
                places.append((number, start))
                pieces.append(Sentence(sentence.words[start:end], tuple(spans)))
    return SupportSet(support.labels, tuple(pieces)), tuple(places)


@lru_cache(maxsize=1)
def embedded_model(device: str | None = None) -> Model:
    """Return the shipped model; it is loaded once."""
    from spanshot.research import checkpoint

    return load_model(checkpoint.embedded_folder(), device)


def learn(
    examples: ExampleSource,
    *,
    nested: bool = False,
    threshold: float | Mapping[str, float] = 0.0,
    finetune: bool = False,
    progress: Progress | None = None,
    model: Model | None = None,
) -> Tagger:
    """Learn the labels marked in ``examples`` with the shipped model, or with ``model``, and return a tagger.

    See `Model.learn` for the arguments.
    """
    model = model or embedded_model()
    return model.learn(examples, nested=nested, threshold=threshold, finetune=finetune, progress=progress)


def load_model(folder: str | Path, device: str | None = None) -> Model:
    """Load the model in a checkpoint folder, or the best one of a training run.

    ``device`` is a device of torch, such as ``"cuda"``; by default the CPU.
    """
    from spanshot.research import checkpoint

    saved = checkpoint.load(folder)
    return Model(_moved(saved.method, device), saved.settings)


def load(folder: str | Path, device: str | None = None) -> Tagger:
    """Load a tagger that `Tagger.save` has saved. It finds the same entities as before."""
    from spanshot.research import checkpoint

    saved = read_checkpoint(Path(folder), [TAGGER, checkpoint.TUNED, *checkpoint.MODEL_FILES])
    if saved.kind != "tagger":
        raise CheckpointError(
            f"{folder}: holds a trained model, not a tagger; use spanshot.load_model(folder).learn(examples)"
        )
    opened = checkpoint.open_model(saved)
    tuned = checkpoint.open_tuned(saved, opened.method)
    model = Model(_moved(opened.method, device), opened.settings)
    try:
        support, options = parse_tagger_json(saved.text(TAGGER))
        if options.finetune is not (tuned is not None):
            raise DataError("the options contradict the files of the checkpoint")
        fitted = model.learn_support(support, replace(options, finetune=False), tuned=tuned and _moved(tuned, device))
        return replace(fitted, options=options)
    except SpanshotError as problem:
        raise saved.error(TAGGER, str(problem)) from None


def _moved(method: Method, device: str | None) -> Method:
    try:
        return method if device is None else method.to(device)
    except (RuntimeError, AssertionError, ValueError) as problem:
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise ConfigError(f"device {device!r} cannot be used: {reason}") from None
