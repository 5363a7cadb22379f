"""The settings that loading a model needs: its method and its encoder, nothing about training or data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from spanshot.errors import ConfigError, did_you_mean
from spanshot.settings import Table, build_section, choose, raise_if_any, to_table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MODEL_SECTIONS = ("method", "encoder")
Settings = TypeVar("Settings")


@dataclass(frozen=True)
class EncoderSettings:
    """[encoder]: the pretrained transformer and how it is trained."""

    name: str = "minilm"
    """`minilm`, a folder in Hugging Face layout, or a hub id."""
    freeze_embeddings: bool = False
    """Do not train the word embeddings, which are half the weights of a small encoder."""
    dropout: float = 0.1
    """Dropout between the transformer's layers during training."""
    attention_dropout: float = 0.0
    """Dropout of attention weights during training. Values above 0 disable fast attention on CPUs."""
    word_dropout: float = 0.0
    """Probability of masking a word during training."""

    def __post_init__(self) -> None:
        for name in ("dropout", "attention_dropout", "word_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must lie in 0..1; found {getattr(self, name)}")


@dataclass(frozen=True)
class ModelSettings:
    """Everything needed to rebuild a model from its weights."""

    method_name: str
    method: DataclassInstance
    """An instance of the ``Settings`` class of the method."""
    encoder: EncoderSettings = field(default_factory=EncoderSettings)

    @classmethod
    def of(cls, table: Mapping[str, object]) -> ModelSettings:
        """Build from the sections ``[method]`` and ``[encoder]``; one error lists every problem."""
        problems = unknown_names(table, MODEL_SECTIONS)
        settings = cls.collect(table, problems)
        raise_if_any(problems)
        assert settings is not None
        return settings

    @classmethod
    def collect(cls, table: Mapping[str, object], problems: list[str]) -> ModelSettings | None:
        """As `of`, ignoring other sections. Problems are added to the list; None if there are any."""
        from spanshot.research.methods import METHODS

        before = len(problems)
        method: tuple[str, DataclassInstance] | None = build_choice(
            table, "method", "name", METHODS, lambda name: METHODS[name].Settings, problems
        )
        encoder = build_section(EncoderSettings, table.get("encoder", {}), "encoder", problems)
        if method is None or encoder is None or len(problems) > before:
            return None
        return cls(*method, encoder)

    def to_table(self) -> Table:
        """Return the table that `of` reads."""
        return {
            "method": {"name": self.method_name, **to_table(self.method)},
            "encoder": to_table(self.encoder),
        }


def build_choice(
    table: Mapping[str, object],
    section: str,
    key: str,
    names: Collection[str],
    kind_of: Callable[[str], type[Settings]],
    problems: list[str],
) -> tuple[str, Settings] | None:
    """Build a section whose settings class is named by one of its keys, such as ``[method] name = "esd"``.

    Return the name and the settings. Problems are added to the list; None if there are any.
    """
    content = table.get(section)
    if not isinstance(content, Mapping):
        problems.append(f"section [{section}] is missing; it needs {key} = one of {', '.join(names)}")
        return None
    try:
        name = choose(content, key, {name: name for name in names}, section)
    except ConfigError as problem:
        problems.append(str(problem))
        return None
    fields = {name: value for name, value in content.items() if name != key}
    settings = build_section(kind_of(name), fields, section, problems)
    return None if settings is None else (name, settings)


def unknown_names(table: Mapping[str, object], allowed: Collection[str]) -> list[str]:
    """Return a problem for every section or setting that is not known."""
    return [
        f"unknown section or setting {name!r}{did_you_mean(name, allowed)}" for name in table if name not in allowed
    ]
