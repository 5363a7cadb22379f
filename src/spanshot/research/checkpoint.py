"""A trained method as a directory: config.toml, weights.safetensors, tokenizer.json, meta.json. No pickle."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from spanshot.errors import CheckpointError, ConfigError, SpanshotError
from spanshot.research.methods import METHODS, Method
from spanshot.research.model_settings import ModelSettings
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.pretrained import describe, load_pretrained, rebuild, set_dropout
from spanshot.research.training.settings import RunSettings
from spanshot.settings import to_toml

FORMAT = 1
EMBEDDED = "embedded"
"""The name by which settings speak of the model that comes with the package."""
FILES = ("config.toml", "weights.safetensors", "tokenizer.json", "meta.json")


@dataclass(frozen=True)
class Checkpoint:
    """A method as it was saved, and what was said of it then."""

    method: Method
    settings: RunSettings
    meta: dict[str, Any]


def new_method(settings: RunSettings) -> Method:
    """The method to train: with the weights of ``train.start``, or untrained on its pretrained encoder."""
    if settings.train.start:
        return _continued(settings)
    encoder = load_pretrained(settings.model.encoder.name, freeze_embeddings=settings.model.encoder.freeze_embeddings)
    return _assemble(encoder, settings.model)


def _continued(settings: RunSettings) -> Method:
    """The method that another run made, under the settings of this one."""
    start = settings.train.start
    saved = load(embedded_folder() if start == EMBEDDED else start)
    for what, then, now in (
        ("method", saved.settings.model.method_name, settings.model.method_name),
        ("encoder", saved.settings.model.encoder.name, settings.model.encoder.name),
    ):
        if then != now:
            raise ConfigError(f"train.start: {start} has the {what} {then!r}, this run {now!r}")
    read = saved.method.encoder
    encoder = Encoder(read.transformer, read.pieces, freeze_embeddings=settings.model.encoder.freeze_embeddings)
    saved.method.encoder = encoder
    try:
        return reopened(saved.method, settings.model).train()
    except ConfigError:
        raise ConfigError(f"train.start: the weights of {start} do not fit the settings in [method]") from None


def reopened(method: Method, settings: ModelSettings) -> Method:
    """The method with its weights under other settings, which must not ask for other weights."""
    changed = _assemble(method.encoder, settings)
    try:
        changed.load_state_dict(method.state_dict())
    except RuntimeError:
        raise ConfigError(
            "the model was trained with other weights than these [method] settings ask for; train it anew"
        ) from None
    return changed.eval()


def save(
    folder: Path, method: Method, settings: RunSettings, *, beside: Mapping[str, str] | None = None, **meta: Any
) -> None:
    """Write the checkpoint beside ``folder`` and put it in its place, so that a kill leaves the old one whole.

    ``beside`` are texts to put into the folder by file name.
    """
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    (fresh / "config.toml").write_text(to_toml(settings.to_table()), encoding="utf-8")
    save_file(weights_of(method), fresh / "weights.safetensors")
    (fresh / "weights.safetensors").chmod((fresh / "config.toml").stat().st_mode)  # safetensors shuts out all others
    method.encoder.pieces.tokenizer.save(str(fresh / "tokenizer.json"))
    described = {"format": FORMAT, **meta, "encoder": describe(method.encoder)}
    (fresh / "meta.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    for name, text in (beside or {}).items():
        (fresh / name).write_text(text, encoding="utf-8")
    replace_folder(fresh, folder)


def load(folder: str | Path) -> Checkpoint:
    """The method saved in ``folder``, or the best one of the run that it holds, ready to tag."""
    folder = _whole(checkpoint_in(Path(folder)))
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        if meta.get("format") != FORMAT:
            raise CheckpointError(
                f"{folder}: checkpoint format {meta.get('format')}; this version of spanshot reads format {FORMAT}"
            )
        settings = RunSettings.of(tomllib.loads((folder / "config.toml").read_text(encoding="utf-8")))
        encoder = rebuild(meta["encoder"], folder / "tokenizer.json")
        method = _assemble(encoder, settings.model)
        method.load_state_dict(load_file(folder / "weights.safetensors"))
    except SpanshotError as problem:
        raise CheckpointError(str(problem) if str(folder) in str(problem) else f"{folder}: {problem}") from None
    except Exception as problem:  # each library complains of a damaged file in a way of its own
        reason = (str(problem) or repr(problem)).splitlines()[0]
        raise CheckpointError(f"{folder}: damaged checkpoint: {reason}") from problem
    return Checkpoint(method.eval(), settings, meta)


def embedded_folder() -> Path:
    """Where the model lies that comes with the package."""
    folder = Path(str(resources.files("spanshot"))) / "model_files"
    if not folder.is_dir():
        raise CheckpointError(
            "this build of spanshot carries no model; train one (`spanshot train`) and name its folder: "
            "spanshot.load_model(folder), or --model FOLDER"
        )
    return folder


def checkpoint_in(folder: Path) -> Path:
    """The folder itself, or the best checkpoint of the run that it holds."""
    best = folder / "best"
    is_run = not (folder / "meta.json").is_file() and (best.exists() or best.with_name("best.old").exists())
    return best if is_run else folder


def weights_of(method: Method) -> dict[str, Tensor]:
    """All weights by name, each in memory of its own as safetensors wants it; in half precision where that is exact."""
    return {name: _smallest(value.detach()).contiguous() for name, value in method.state_dict().items()}


def _smallest(weight: Tensor) -> Tensor:
    if weight.dtype != torch.float32:
        return weight
    half = weight.half()
    return half if torch.equal(half.float(), weight) else weight


def replace_folder(fresh: Path, folder: Path) -> None:
    """Rename ``fresh`` to ``folder``; what stood there is gone only once the new one is in place."""
    old = folder.with_name(f"{folder.name}.old")
    if old.exists() and not folder.exists():  # an earlier kill fell between the two renames
        old.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _whole(folder: Path) -> Path:
    """The folder, or what a kill between two renames left of it."""
    old = folder.with_name(f"{folder.name}.old")
    if not folder.exists() and old.exists():
        folder = old
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such checkpoint folder")
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise CheckpointError(f"{folder}: not a checkpoint: {', '.join(missing)} missing")
    return folder


def _assemble(encoder: Encoder, settings: ModelSettings) -> Method:
    own = settings.encoder
    set_dropout(encoder, own.dropout, own.attention_dropout, own.word_dropout)
    return METHODS[settings.method_name](encoder, settings.method)
