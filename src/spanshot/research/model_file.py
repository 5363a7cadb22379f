"""The file `model.toml` of a checkpoint: everything needed to build a model, but for its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer

from spanshot.engine.pieces import build_pieces
from spanshot.errors import ConfigError
from spanshot.research.learning.method import evaluating
from spanshot.research.methods import METHODS, Method
from spanshot.research.model_settings import MODEL_SECTIONS, ModelSettings, unknown_names
from spanshot.research.nn.architectures import Field, architecture_fields, build_transformer, describe_transformer
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.pretrained import check_vocabulary, set_dropout
from spanshot.research.nn.tag_head import TagHead
from spanshot.settings import Table, build, parse_toml, raise_if_any, to_table
from spanshot.types import Sentence

ARCHITECTURE, PIECES, LABELS, PROBE = "architecture", "pieces", "labels", "probe"
PROBE_SENTENCE = Sentence(("Ada", "Lovelace", "wrote", "the", "first", "program", "in", "1843", "."))
PROBE_SIZE = 16
PROBE_TOLERANCE = 1e-3
"""How far the vector of the probe may be off, relative to its largest value. Platforms differ by about 1e-6."""
_LARGEST = 10**9


@dataclass(frozen=True)
class PieceSettings:
    """[pieces]: how words become pieces."""

    longest: int
    """The most pieces that the encoder reads at once."""
    padding_id: int
    """The number of the piece that fills up rows."""
    unknown: str = ""
    """The piece for words that yield none; none if empty."""


@dataclass(frozen=True)
class ModelFile:
    """The content of `model.toml`."""

    settings: ModelSettings
    architecture: Mapping[str, Field]
    pieces: PieceSettings
    labels: Mapping[str, tuple[str, ...]]
    """The labels of heads that were trained for fixed labels, by the name of the head."""
    probe: tuple[float, ...]
    """The first values of the encoder's mean vector of a fixed sentence."""

    @classmethod
    def of(cls, method: Method, settings: ModelSettings) -> ModelFile:
        """Describe a method."""
        pieces = method.encoder.pieces
        return cls(
            settings,
            describe_transformer(method.encoder.transformer),
            PieceSettings(pieces.longest, pieces.padding_id, pieces.unknown or ""),
            {name: head.labels for name, head in method.named_modules() if isinstance(head, TagHead)},
            probe_vector(method),
        )

    def to_table(self) -> Table:
        """Return the table that `read_model_file` reads."""
        return {
            **self.settings.to_table(),
            ARCHITECTURE: dict(self.architecture),
            PIECES: to_table(self.pieces),
            LABELS: {name: list(labels) for name, labels in self.labels.items()},
            PROBE: {"values": list(self.probe)},
        }

    def build(self, tokenizer: Tokenizer, path: Path) -> Method:
        """Build the method with random weights. `path` names the tokenizer's file in errors."""
        settings = self.pieces
        transformer = build_transformer(self.architecture)
        pieces = build_pieces(
            tokenizer,
            longest=settings.longest,
            unknown=settings.unknown or None,
            padding_id=settings.padding_id,
            path=path,
        )
        check_vocabulary(transformer, pieces, path)
        encoder = Encoder(transformer, pieces, freeze_embeddings=self.settings.encoder.freeze_embeddings)
        with torch.random.fork_rng(devices=()):
            method = build_method(encoder, self.settings)
        for name, labels in self.labels.items():
            heads = dict(method.named_modules())
            head = heads.get(name)
            if not isinstance(head, TagHead):
                raise ConfigError(f"[{LABELS}] {name[:80]!a} is not a head of this model")
            head.know(labels)
        return method

    def check_probe(self, method: Method) -> None:
        """Raise `ConfigError` if the encoder does not encode as it did when it was saved."""
        values = probe_vector(method)
        largest = max(1.0, *(abs(value) for value in values))
        if len(values) != len(self.probe) or not all(  # also if a value is not a number
            abs(value - saved) <= PROBE_TOLERANCE * largest for value, saved in zip(values, self.probe, strict=True)
        ):
            raise ConfigError(
                "the encoder gives other vectors than when it was saved: settings, weights and tokenizer do not belong "
                "together, or an installed library works differently"
            )


def build_method(encoder: Encoder, settings: ModelSettings) -> Method:
    """Return a method with random weights on top of an encoder."""
    encoder_settings = settings.encoder
    set_dropout(encoder, encoder_settings.dropout, encoder_settings.attention_dropout, encoder_settings.word_dropout)
    return METHODS[settings.method_name](encoder, settings.method)


def copy_labels(source: Method, target: Method) -> None:
    """Give the heads of a method the labels of those of another one."""
    heads = dict(target.named_modules())
    for name, head in source.named_modules():
        twin = heads.get(name)
        if isinstance(head, TagHead) and isinstance(twin, TagHead):
            twin.know(head.labels)


def probe_vector(method: Method) -> tuple[float, ...]:
    """Return the first values of the encoder's mean vector of the probe sentence."""
    with evaluating(method.encoder):
        vector = method.encoder([PROBE_SENTENCE]).first.mean(0)[:PROBE_SIZE]
    return tuple(round(value, 6) for value in vector.tolist())


def read_model_file(text: str) -> ModelFile:
    """Read and check `model.toml`; one error lists every problem of a section."""
    table = parse_toml(text)
    raise_if_any(unknown_names(table, (*MODEL_SECTIONS, ARCHITECTURE, PIECES, LABELS, PROBE)))
    _check_numbers(table)
    return ModelFile(
        ModelSettings.of({name: table[name] for name in MODEL_SECTIONS if name in table}),
        architecture_fields(_section(table, ARCHITECTURE)),
        build(PieceSettings, _section(table, PIECES)),
        {name: _labels(name, value) for name, value in _section(table, LABELS).items()},
        _floats(_section(table, PROBE).get("values")),
    )


def _section(table: Table, name: str) -> Table:
    section = table.get(name)
    if not isinstance(section, dict):
        raise ConfigError(f"section [{name}] is missing")
    return section


def _labels(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(label, str) and label for label in value):
        raise ConfigError(f"[{LABELS}] {name[:80]!a} must be a list of labels")
    if len(set(value)) < len(value):
        raise ConfigError(f"[{LABELS}] {name[:80]!a} has a label twice")
    return tuple(value)


def _floats(value: object) -> tuple[float, ...]:
    if not isinstance(value, list) or not all(isinstance(item, float) for item in value):
        raise ConfigError(f"[{PROBE}] values must be a list of numbers")
    return tuple(value)


def _check_numbers(value: object) -> None:
    """Refuse numbers that no setting has, wherever they stand."""
    if isinstance(value, dict):
        for item in value.values():
            _check_numbers(item)
    elif isinstance(value, list):
        for item in value:
            _check_numbers(item)
    elif isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST:
        raise ConfigError(f"the number {str(value)[:40]} is out of range")
