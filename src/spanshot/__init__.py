"""Few-shot sequence labelling: show a handful of labelled sentences, find those entities in new text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spanshot.types import Entity, Episode, ScoredSpan, Sentence, Span, SupportSet

if TYPE_CHECKING:
    from spanshot.predictor import Predictor, load

__version__ = "0.1.0"
__all__ = ["Entity", "Episode", "Predictor", "ScoredSpan", "Sentence", "Span", "SupportSet", "load"]


def __getattr__(name: str) -> Any:
    """``load`` and ``Predictor`` bring torch along, so they are imported when first asked for."""
    if name in {"Predictor", "load"}:
        from spanshot import predictor

        return getattr(predictor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
