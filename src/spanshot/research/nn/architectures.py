"""The transformer architectures that encoders can have, and the fields that describe one.

A config file, wherever it comes from, is only data: its architecture must be in this list, the fields named here are
checked and used, and all others are ignored. Files never cause code to be loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import transformers
from torch import nn

from spanshot.errors import ConfigError

_SIZES = {
    "vocab_size": 4_000_000,
    "hidden_size": 16_384,
    "num_hidden_layers": 256,
    "num_attention_heads": 1_024,
    "intermediate_size": 131_072,
    "max_position_embeddings": 131_072,
    "type_vocab_size": 1_024,
    "relative_attention_num_buckets": 1_024,
    "embedding_size": 16_384,
    "n_layers": 256,
    "n_heads": 1_024,
    "dim": 16_384,
    "hidden_dim": 131_072,
}
"""The largest values of the fields that are sizes; all are at least 1."""
_ACTIVATIONS = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "silu", "tanh")
_BERT = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "pad_token_id",
)
_MPNET = (*(name for name in _BERT if name != "type_vocab_size"), "relative_attention_num_buckets")
_DISTILBERT = ("vocab_size", "max_position_embeddings", "n_layers", "n_heads", "dim", "hidden_dim", "activation")
_FORBIDDEN = ("auto_map", "quantization_config", "is_decoder", "add_cross_attention", "sinusoidal_pos_embds")

Field = int | float | str


@dataclass(frozen=True)
class _Architecture:
    config: str
    model: str
    fields: tuple[str, ...]
    position_offset: int = 0
    """How many positions are lost because counting starts after the padding id."""


_ARCHITECTURES = {
    "bert": _Architecture("BertConfig", "BertModel", _BERT),
    "camembert": _Architecture("CamembertConfig", "CamembertModel", _BERT, position_offset=2),
    "distilbert": _Architecture("DistilBertConfig", "DistilBertModel", (*_DISTILBERT, "pad_token_id")),
    "electra": _Architecture("ElectraConfig", "ElectraModel", (*_BERT, "embedding_size")),
    "mpnet": _Architecture("MPNetConfig", "MPNetModel", _MPNET, position_offset=2),
    "roberta": _Architecture("RobertaConfig", "RobertaModel", _BERT, position_offset=2),
    "xlm-roberta": _Architecture("XLMRobertaConfig", "XLMRobertaModel", _BERT, position_offset=2),
}


def architecture_fields(config: Mapping[str, object]) -> dict[str, Field]:
    """Return the checked fields of a config, `model_type` among them. One error lists every problem."""
    name = config.get("model_type")
    if not isinstance(name, str) or name not in _ARCHITECTURES:
        raise ConfigError(f"model_type {str(name)[:80]!a} is not supported; choose one of {', '.join(_ARCHITECTURES)}")
    problems = [f"{field} is not supported" for field in _FORBIDDEN if config.get(field)]
    if config.get("position_embedding_type", "absolute") != "absolute":
        problems.append("position_embedding_type must be 'absolute'")
    fields: dict[str, Field] = {"model_type": name}
    for field in _ARCHITECTURES[name].fields:
        value = config.get(field)
        if value is None:  # old config files leave out fields that have their usual values
            continue
        problem = _problem(field, value)
        if problem:
            problems.append(f"{field} must be {problem}; found {str(value)[:40]!a}")
        elif isinstance(value, int | float | str):
            fields[field] = value
    heads, size = fields.get("num_attention_heads"), fields.get("hidden_size")
    if not problems and isinstance(heads, int) and isinstance(size, int) and size % heads:
        problems.append(f"hidden_size {size} is not a multiple of num_attention_heads {heads}")
    if problems:
        raise ConfigError("; ".join(problems))
    return fields


def _problem(field: str, value: object) -> str:
    """Describe the values a field may have if its value is not one of them; otherwise return an empty string."""
    if field in _SIZES:
        if type(value) is not int or not 1 <= value <= _SIZES[field]:
            return f"a whole number from 1 to {_SIZES[field]:,}"
    elif field == "pad_token_id":
        if type(value) is not int or not 0 <= value < _SIZES["vocab_size"]:
            return "the number of a piece"
    elif field == "layer_norm_eps":
        if type(value) is not float or not 0 < value < 0.1:
            return "a small number above 0"
    elif value not in _ACTIVATIONS:
        return f"one of {', '.join(_ACTIVATIONS)}"
    return ""


def build_transformer(fields: Mapping[str, Field]) -> nn.Module:
    """Return a transformer with the given fields and random weights, without its pooler."""
    architecture = _ARCHITECTURES[str(fields["model_type"])]
    parameters = {name: value for name, value in fields.items() if name != "model_type"}
    try:
        config = getattr(transformers, architecture.config)(**parameters)
        with torch.random.fork_rng(devices=()):  # the weights are drawn only to be overwritten
            transformer: nn.Module = getattr(transformers, architecture.model)(config)
    except (ValueError, TypeError, AssertionError) as problem:  # fields that contradict each other
        raise ConfigError(str(problem).strip().split("\n")[0]) from None
    if hasattr(transformer, "pooler"):
        transformer.pooler = None  # type: ignore[assignment]
    return transformer.eval()


def most_pieces(transformer: nn.Module) -> int:
    """Return how many pieces the positions of a transformer allow."""
    config = transformer.config
    positions: int = config.max_position_embeddings  # type: ignore[union-attr, assignment]
    return positions - _ARCHITECTURES[config.model_type].position_offset  # type: ignore[union-attr, index]


def describe_transformer(transformer: nn.Module) -> dict[str, Field]:
    """Return the fields that `build_transformer` needs to build the same transformer again."""
    config: dict[str, object] = transformer.config.to_dict()  # type: ignore[union-attr, operator]
    return architecture_fields(config)
