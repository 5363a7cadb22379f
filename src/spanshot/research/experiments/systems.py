"""The systems that the tables compare, by name: all learn annotated texts and tag texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanshot.engine.files import DTYPES
from spanshot.errors import ConfigError
from spanshot.heads.settings import ScoreSettings
from spanshot.learner import LinearLearner
from spanshot.model import Model, embedded_model, load_model
from spanshot.research.checkpoint import RECORD
from spanshot.research.experiments.raw_text import Tag, TextExample
from spanshot.tagger import Tagger

Learn = Callable[[Sequence[str], Sequence[TextExample]], Tag]
"""Learns labels from annotated texts, or from their names if there are none."""
BOTH, EXAMPLES, NAMES = "names and examples", "examples only", "names only"
MODES = (BOTH, EXAMPLES, NAMES)
DEFAULT, INT8, TAGGER, SPACY = "default", "int8", "tagger", "spacy"


@dataclass(frozen=True, slots=True)
class System:
    """A system with its name in tables, and a digest of the settings or weights that its figures depend on."""

    name: str
    identity: str
    learn: Learn
    modes: tuple[str, ...] = (EXAMPLES,)


@dataclass(frozen=True, slots=True)
class Options:
    """How a model of this package learns and tags."""

    threshold: float | None = None
    """Minimum score of an entity (None: the model's default)."""
    nested: bool = False
    finetune: bool = False


def find_system(name: str, options: Options | None = None) -> System:
    """Return a system by name: ``default``, ``int8``, ``tagger``, ``spacy``, or the folder of a trained model."""
    options = options or Options()
    if name == TAGGER:
        from spanshot.research.experiments.finetuned_tagger import TaggerRecipe, finetune_tagger

        recipe = TaggerRecipe()
        return System(name, repr(recipe), lambda labels, support: finetune_tagger(labels, support, recipe))
    if name == SPACY:
        from spanshot.research.experiments.spacy_ner import SpacyRecipe, train_spacy

        setup = SpacyRecipe()
        return System(name, repr(setup), lambda labels, support: train_spacy(labels, support, setup))
    if name in (DEFAULT, INT8):
        dtype = "float32" if name == DEFAULT else name
        return _spanshot(name, embedded_model(dtype=dtype), Path(__file__).parents[2] / "model_files", options, dtype)
    if Path(name).is_dir():
        return _spanshot(Path(name).name, load_model(name), Path(name), options)
    raise ConfigError(f"unknown system {name!r}; give {DEFAULT}, {INT8}, {TAGGER}, {SPACY} or the folder of a model")


def learn_tagger(labels: Sequence[str], support: Sequence[TextExample], options: Options | None = None) -> Tagger:
    """Learn labels by name and from annotated texts with the default model."""
    return _learn(embedded_model(), labels, support, options or Options())


def score_settings(name: str) -> ScoreSettings:
    """Return how a model, the packaged one or that of a folder, turns logits into scores."""
    learner = (embedded_model() if name == DEFAULT else load_model(name)).method
    if not isinstance(learner, LinearLearner):
        raise ConfigError(f"{name} is not a model with a linear head")
    return learner.settings.scores


def _learn(model: Model, labels: Sequence[str], support: Sequence[TextExample], options: Options) -> Tagger:
    return model.learn(
        tuple(example.record() for example in support),
        labels=list(labels),
        nested=options.nested,
        threshold=options.threshold,
        finetune=options.finetune,
    )


def _spanshot(name: str, model: Model, folder: Path, options: Options, dtype: str = "float32") -> System:
    def learn(labels: Sequence[str], support: Sequence[TextExample]) -> Tag:
        tagger = _learn(model, labels, support, options)
        return lambda texts: list(tagger.pipe(texts))

    digest = hashlib.sha256(repr(options).encode())
    unused = {RECORD, *(file for other, file in DTYPES.items() if other != dtype)}
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".safetensors", ".onnx", ".toml"} and path.name not in unused:
            digest.update(path.read_bytes())
    title = f"{name}{', fine-tuned' if options.finetune else ''}{', nested' if options.nested else ''}"
    return System(title, digest.hexdigest()[:12], learn, MODES)
