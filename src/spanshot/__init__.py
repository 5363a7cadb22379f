"""Few-shot sequence labelling: learn labels from a few examples and find those entities in new text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from spanshot.errors import SpanshotError, SpanshotWarning
from spanshot.types import Entity, Episode, LearnOptions, Reason, ScoredSpan, Sentence, Span, SupportSet

if TYPE_CHECKING:
    from spanshot.integrations.notebook import show
    from spanshot.model import Model, learn, load, load_model
    from spanshot.tagger import Tagger

__version__ = "0.1.0"
__all__ = [
    "Entity",
    "Episode",
    "LearnOptions",
    "Model",
    "Reason",
    "ScoredSpan",
    "Sentence",
    "Span",
    "SpanshotError",
    "SpanshotWarning",
    "SupportSet",
    "Tagger",
    "learn",
    "load",
    "load_model",
    "show",
]
_LAZY = {
    "Model": "model",
    "learn": "model",
    "load": "model",
    "load_model": "model",
    "Tagger": "tagger",
    "show": "integrations.notebook",
}


def __getattr__(name: str) -> object:
    """Import the names that need more than the standard library when they are first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"spanshot.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
