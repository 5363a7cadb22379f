"""Trained methods as checkpoints.

model.toml             the settings of method and encoder, and everything else that loading needs
weights.safetensors    all weights, in half precision where that loses nothing
tokenizer.json         the tokenizer of the encoder
training.toml          how the model was trained and how good it was; never needed for loading
tuned.safetensors      in the checkpoint of a fine-tuned tagger: the weights that fine-tuning has changed

The settings are checked before anything is built from them. The weights must have exactly the names, shapes and types
of the model that the settings describe, and the encoder must encode a fixed sentence as it did when it was saved.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors import torch as tensors
from torch import Tensor

from spanshot.checkpoint import Checkpoint, checkpoint_in, packaged_folder, read_checkpoint, write_checkpoint
from spanshot.engine.pieces import read_tokenizer
from spanshot.errors import CheckpointError, ConfigError, SpanshotError
from spanshot.research.methods import Method
from spanshot.research.model_file import ModelFile, build_method, copy_labels, read_model_file
from spanshot.research.model_settings import ModelSettings
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.pretrained import check_weights, load_pretrained
from spanshot.settings import Table, parse_toml, to_toml

if TYPE_CHECKING:
    from spanshot.research.training.settings import RunSettings

__all__ = [
    "EMBEDDED",
    "MODEL",
    "MODEL_FILES",
    "RECORD",
    "TOKENIZER",
    "TUNED",
    "WEIGHTS",
    "Method",
    "ModelSettings",
    "SavedModel",
    "checkpoint_in",
    "embedded_folder",
    "load",
    "model_files",
    "new_method",
    "open_model",
    "open_tuned",
    "read_record",
    "reopened",
    "save",
    "tuned_weights",
    "weights_of",
]
EMBEDDED = "embedded"
"""The name of the shipped model in settings."""
MODEL, WEIGHTS, TOKENIZER, RECORD = "model.toml", "weights.safetensors", "tokenizer.json", "training.toml"
TUNED = "tuned.safetensors"
MODEL_FILES = (MODEL, WEIGHTS, TOKENIZER)


@dataclass(frozen=True)
class SavedModel:
    """A method as it was saved, ready to learn and tag."""

    method: Method
    settings: ModelSettings


def new_method(settings: RunSettings) -> Method:
    """Return the method to train: with the weights of `train.start`, or untrained on its pretrained encoder."""
    model = settings.model
    if settings.train.start:
        return _continued(model, settings.train.start)
    encoder = load_pretrained(model.encoder.name, freeze_embeddings=model.encoder.freeze_embeddings)
    return build_method(encoder, model)


def _continued(settings: ModelSettings, start: str) -> Method:
    """Return the method of another run under the settings of this one."""
    saved = load(embedded_folder() if start == EMBEDDED else start)
    for part, saved_name, name in (
        ("method", saved.settings.method_name, settings.method_name),
        ("encoder", saved.settings.encoder.name, settings.encoder.name),
    ):
        if saved_name != name:
            raise ConfigError(f"train.start: {start} has the {part} {saved_name!r}, this run {name!r}")
    encoder = saved.method.encoder
    saved.method.encoder = Encoder(
        encoder.transformer, encoder.pieces, freeze_embeddings=settings.encoder.freeze_embeddings
    )
    try:
        return reopened(saved.method, settings).train()
    except ConfigError:
        raise ConfigError(f"train.start: the weights of {start} do not fit the settings in [method]") from None


def reopened(method: Method, settings: ModelSettings) -> Method:
    """Return the method with its weights under other settings, which must not need other weights."""
    changed = build_method(method.encoder, settings)
    copy_labels(method, changed)
    try:
        changed.load_state_dict(method.state_dict())
    except RuntimeError:
        raise ConfigError("the weights of the model do not fit these [method] settings; train it again") from None
    return changed.eval()


def save(folder: str | Path, method: Method, settings: ModelSettings, *, record: Table | None = None) -> None:
    """Save a method as a checkpoint. `record` says how it was trained."""
    write_checkpoint(folder, "model", model_files(method, settings, record=record))


def model_files(method: Method, settings: ModelSettings, *, record: Table | None = None) -> dict[str, bytes]:
    """Return the files of a model, by name, for `spanshot.checkpoint.write_checkpoint`."""
    files = {
        MODEL: to_toml(ModelFile.of(method, settings).to_table()).encode(),
        WEIGHTS: tensors.save(weights_of(method)),
        TOKENIZER: method.encoder.pieces.tokenizer.to_str(pretty=True).encode(),
    }
    return files | ({RECORD: to_toml(record).encode()} if record else {})


def load(folder: str | Path) -> SavedModel:
    """Load the method saved in `folder`, or the best one of the run that it contains."""
    return open_model(read_checkpoint(checkpoint_in(Path(folder)), MODEL_FILES))


def open_model(checkpoint: Checkpoint) -> SavedModel:
    """Build the method of a checkpoint whose files have been read."""
    for name in MODEL_FILES:
        checkpoint.content(name)
    try:
        described = read_model_file(checkpoint.text(MODEL))
        tokenizer = read_tokenizer(checkpoint.content(TOKENIZER), checkpoint.path(TOKENIZER))
        weights = _read_weights(checkpoint, WEIGHTS)
        with torch.device("meta"):  # takes no memory, whatever the settings say
            needed = described.build(tokenizer, checkpoint.path(TOKENIZER)).state_dict()
        check_weights(weights, needed, checkpoint.path(WEIGHTS))
        method = described.build(tokenizer, checkpoint.path(TOKENIZER))
        method.load_state_dict(weights)
        described.check_probe(method)
    except SpanshotError as problem:
        raise _naming_the_file(checkpoint, problem) from None
    except (ValueError, TypeError, RuntimeError, ArithmeticError, MemoryError) as problem:
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
        raise checkpoint.error(MODEL, f"no model can be built from it: {reason}") from problem
    return SavedModel(method.eval(), described.settings)


def tuned_weights(base: Method, tuned: Method) -> bytes:
    """Return the file with the weights of a fine-tuned copy that differ from those of the method."""
    before = base.state_dict()
    return tensors.save(
        {
            name: weight.detach().cpu().contiguous()
            for name, weight in tuned.state_dict().items()
            if not torch.equal(weight, before[name])
        }
    )


def open_tuned(checkpoint: Checkpoint, base: Method) -> Method | None:
    """Return the fine-tuned copy of a method in the checkpoint of a tagger, if it has one."""
    if TUNED not in checkpoint.files:
        return None
    tuned = copy.deepcopy(base)
    needed = tuned.state_dict()
    changed = _read_weights(checkpoint, TUNED)
    try:
        check_weights({**needed, **changed}, needed, checkpoint.path(TUNED))
    except ConfigError as problem:
        raise _naming_the_file(checkpoint, problem) from None
    tuned.load_state_dict({**needed, **changed})
    return tuned.eval()


def read_record(folder: str | Path) -> Table:
    """Return the record of how a saved model was trained, or of the best model of a run."""
    checkpoint = read_checkpoint(checkpoint_in(Path(folder)), [RECORD])
    try:
        return parse_toml(checkpoint.text(RECORD))
    except ConfigError as problem:
        raise checkpoint.error(RECORD, str(problem)) from None


def embedded_folder() -> Path:
    """Return the folder of the shipped model."""
    return packaged_folder()


def weights_of(method: Method) -> dict[str, Tensor]:
    """Return all weights by name, in half precision where that loses nothing."""
    return {name: _smallest(value.detach().cpu()).contiguous() for name, value in method.state_dict().items()}


def _smallest(weight: Tensor) -> Tensor:
    if weight.dtype != torch.float32:
        return weight
    half = weight.half()
    return half if torch.equal(half.float(), weight) else weight


def _read_weights(checkpoint: Checkpoint, name: str) -> Mapping[str, Tensor]:
    try:
        return tensors.load(checkpoint.content(name))
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError) as problem:
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
        raise checkpoint.error(name, f"damaged: {reason}") from None


def _naming_the_file(checkpoint: Checkpoint, problem: SpanshotError) -> CheckpointError:
    """Return an error that names a file: settings that are wrong stand in model.toml."""
    if str(checkpoint.folder) in str(problem):
        return CheckpointError(str(problem))
    return checkpoint.error(MODEL, str(problem))
