"""Few-shot sequence labelling: show a handful of labelled sentences, find those entities in new text."""

from spanshot.types import Entity, Episode, ScoredSpan, Sentence, Span, SupportSet

__version__ = "0.1.0"
__all__ = ["Entity", "Episode", "ScoredSpan", "Sentence", "Span", "SupportSet"]
