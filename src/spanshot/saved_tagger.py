"""Save taggers and open them again, and open models. Knows both kinds of models: the engine's and the upper floor's.

A tagger of the packaged model is saved as its examples, its options and its fitted head; it refers to the model by
digest. All other taggers are saved with their model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from spanshot.checkpoint import Checkpoint, packaged_folder, read_checkpoint, write_checkpoint
from spanshot.engine.layout import ENGINE, ENGINE_FILES, combined_digest
from spanshot.errors import CheckpointError, ConfigError, DataError, SpanshotError, SpanshotWarning
from spanshot.manifest import Manifest
from spanshot.optional import missing
from spanshot.tagger import Tagger
from spanshot.tagger_file import TAGGER, TaggerFile, parse_tagger_json, tagger_json
from spanshot.types import Learner

if TYPE_CHECKING:
    from spanshot.learner import LinearLearner
    from spanshot.model import Model

HEAD = "head.safetensors"
MODEL = "model.toml"
"""Settings of the upper floor's method, kept with the engine's files if they are there."""
TUNED = "tuned.safetensors"
_RESEARCH_FILES = (MODEL, "weights.safetensors", "tokenizer.json")


@dataclass(frozen=True)
class StoredFiles:
    """The engine's files in a checkpoint folder, read again when they are needed."""

    folder: Path

    def __call__(self) -> Mapping[str, bytes]:
        """Read the files."""
        return read_checkpoint(self.folder, [*ENGINE_FILES, MODEL]).files


class PackagedFiles:
    """The engine's files in the package. They are pickled by name: other machines have them too."""

    def __call__(self) -> Mapping[str, bytes]:
        """Read the files."""
        return StoredFiles(packaged_folder())()


def open_model(
    folder: Path, device: str | None = None, *, dtype: str | None = None, threads: int | None = None
) -> tuple[Learner, object]:
    """Open the model in a checkpoint folder; return it and the settings that it is saved with."""
    if folder.is_dir() and ENGINE in Manifest.read(folder).files:
        return _open_engine(read_checkpoint(folder, ENGINE_FILES), device, dtype, threads), None
    if dtype not in (None, "float32"):
        raise ConfigError(f"dtype {dtype!r} needs an exported model; use `spanshot export`")
    checkpoint = _research()
    saved = checkpoint.load(folder)
    return _moved(saved.method, device), saved.settings


def _open_engine(
    checkpoint: Checkpoint, device: str | None, dtype: str | None = None, threads: int | None = None
) -> LinearLearner:
    from spanshot.learner import LinearLearner

    if device not in (None, "cpu"):
        raise ConfigError(f"this model runs on the CPU only; leave out the device {device!r}")
    digest = combined_digest({name: stored.sha256 for name, stored in checkpoint.manifest.files.items()})
    is_packaged = checkpoint.folder.resolve() == packaged_folder().resolve()
    reread = PackagedFiles() if is_packaged else StoredFiles(checkpoint.folder)
    try:
        return LinearLearner.open(checkpoint.files, reread, digest=digest, dtype=dtype, threads=threads)
    except CheckpointError as problem:
        raise CheckpointError(f"{checkpoint.folder}: {problem}") from None


def save(learner: Learner, settings: object, tagger: Tagger, folder: Path, *, whole: bool, examples: bool) -> None:
    """Save a tagger as a checkpoint."""
    files: dict[str, bytes] = {}
    reference = base = ""
    if (engine := _engine_learner(tagger.tuned or learner)) is not None:
        from spanshot.head_file import head_bytes
        from spanshot.linear_tagger import LinearTagger

        assert isinstance(tagger.sentence_tagger, LinearTagger)
        files[HEAD] = head_bytes(tagger.sentence_tagger, examples=examples)
        reference = engine.digest
        if engine is not learner and (before := _engine_learner(learner)) is not None:
            base = before.digest
        if whole or not isinstance(engine.files, PackagedFiles):
            files |= engine.files()
    else:
        checkpoint = _research()
        if not examples:
            raise ConfigError(f"a tagger of the method {learner.name!r} cannot be saved without its examples")
        files |= checkpoint.model_files(learner, settings)
        if tagger.options.finetune:
            files[TUNED] = checkpoint.tuned_weights(learner, tagger.tuned or learner)
    support = tagger.support if examples else replace(tagger.support, sentences=())
    has_examples = examples and tagger.has_examples
    content = TaggerFile(support, tagger.options, reference, has_examples, tagger.by_line, base)
    write_checkpoint(folder, "tagger", {TAGGER: tagger_json(content).encode(), **files})


def _engine_learner(learner: Learner) -> LinearLearner | None:
    if learner.name != "linear":
        return None
    from spanshot.learner import LinearLearner

    return learner if isinstance(learner, LinearLearner) else None


@dataclass(frozen=True)
class SavedTagger:
    """A tagger's checkpoint whose files have been read."""

    checkpoint: Checkpoint
    content: TaggerFile
    learner: Learner | None
    """The model in the checkpoint; None: the one in the package."""
    settings: object
    tuned: Learner | None

    def restore(self, model: Model) -> Tagger:
        """Return the tagger, with its model."""
        options = self.content.options
        try:
            if HEAD in self.checkpoint.files:
                return self._with_head(model)
            if options.finetune is not (self.tuned is not None):
                raise DataError("the options contradict the files of the checkpoint")
            fitted = model.learn_support(self.content.support, replace(options, finetune=False), tuned=self.tuned)
            return replace(fitted, options=options)
        except SpanshotError as problem:
            raise self.checkpoint.error(TAGGER, str(problem)) from None

    def _with_head(self, model: Model) -> Tagger:
        from spanshot.head_file import read_head

        content = self.content
        learner = _engine_learner(self.tuned or model.method)
        if learner is None or learner.digest != content.model:
            if not content.has_examples:
                raise DataError(
                    "it was saved without examples, for another model than the one in this package; install the "
                    "version of spanshot that saved it, or learn again"
                )
            message = f"{self.checkpoint.folder}: learned anew, as the model in the package is another one"
            warnings.warn(message, SpanshotWarning, stacklevel=4)
            return model.learn_support(content.support, content.options)
        prepared = model.prepared(content.support, content.options)
        try:
            head = read_head(self.checkpoint.content(HEAD), learner, prepared.learned, content.options)
        except DataError as problem:
            raise self.checkpoint.error(HEAD, str(problem)) from None
        by_line = prepared.by_line if content.has_examples else content.by_line
        has_examples = content.has_examples
        return Tagger(head, content.support, content.options, model, self.tuned, by_line, prepared.pieces, has_examples)


def read(folder: Path, device: str | None = None) -> SavedTagger:
    """Read the checkpoint of a tagger."""
    names = [TAGGER, HEAD, TUNED, *ENGINE_FILES, *_RESEARCH_FILES]
    saved = read_checkpoint(folder, names)
    if saved.kind != "tagger":
        raise CheckpointError(
            f"{folder}: holds a trained model, not a tagger; use spanshot.load_model(folder).learn(examples)"
        )
    learner: Learner | None = None
    settings: object = None
    tuned: Learner | None = None
    if ENGINE in saved.files:
        learner = _open_engine(saved, device)
    elif HEAD not in saved.files:
        checkpoint = _research()
        opened = checkpoint.open_model(saved)
        base_tuned = checkpoint.open_tuned(saved, opened.method)
        learner, settings = _moved(opened.method, device), opened.settings
        tuned = base_tuned and _moved(base_tuned, device)
    try:
        content = parse_tagger_json(saved.text(TAGGER))
    except SpanshotError as problem:
        raise saved.error(TAGGER, str(problem)) from None
    if ENGINE in saved.files and content.base and content.base == packaged_digest():
        learner, tuned = None, learner  # the packaged model, fine-tuned
    return SavedTagger(saved, content, learner, settings, tuned)


def packaged_digest() -> str:
    """Return the digest of the model in the package, without reading it; empty if there is none."""
    try:
        files = Manifest.read(packaged_folder()).files
    except CheckpointError:
        return ""
    return combined_digest({name: stored.sha256 for name, stored in files.items()})


def _research() -> ModuleType:
    """Import the upper floor, which opens its own checkpoints."""
    try:
        from spanshot.research import checkpoint
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] == "spanshot":
            raise
        advice = missing(problem.name, "train", "this model")
        raise ConfigError(f"{advice}, or export the model for the base install with `spanshot export`") from None
    return checkpoint


def _moved(method: Learner, device: str | None) -> Learner:
    if device is None:
        return method
    try:
        moved: Learner = method.to(device)  # type: ignore[attr-defined]
    except (RuntimeError, AssertionError, ValueError) as problem:
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise ConfigError(f"device {device!r} cannot be used: {reason}") from None
    return moved
