"""The names of a model's files, and the digest that identifies a model."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

ENGINE, SPANS, SPANS_INT8, NAMES = "engine.toml", "spans.onnx", "spans-int8.onnx", "names.onnx"
WEIGHTS, TOKENIZER = "weights.safetensors", "tokenizer.json"
ENGINE_FILES = (ENGINE, SPANS, SPANS_INT8, NAMES, WEIGHTS, TOKENIZER)


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return what identifies a model: one digest of all its files."""
    return combined_digest({name: sha256(files[name]).hexdigest() for name in ENGINE_FILES if name in files})


def combined_digest(digests: Mapping[str, str]) -> str:
    """Return one digest for the digests of a model's files."""
    lines = "".join(f"{name} {digests[name]}\n" for name in ENGINE_FILES if name in digests)
    return sha256(lines.encode()).hexdigest()
