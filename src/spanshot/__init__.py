"""Few-shot sequence labelling: show a handful of labelled sentences, find those entities in new text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spanshot.types import Entity, Episode, Reason, ScoredSpan, Sentence, Span, SupportSet

if TYPE_CHECKING:
    from spanshot.tagger import Model, Tagger, learn, load, load_model

__version__ = "0.1.0"
__all__ = [
    "Entity",
    "Episode",
    "Model",
    "Reason",
    "ScoredSpan",
    "Sentence",
    "Span",
    "SupportSet",
    "Tagger",
    "learn",
    "load",
    "load_model",
]


def __getattr__(name: str) -> Any:
    """These bring torch along, so they are imported when first asked for."""
    if name in {"Model", "Tagger", "learn", "load", "load_model"}:
        from spanshot import tagger

        return getattr(tagger, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
