"""Hypothesis strategies for spans and scored spans.

Scores are multiples of 1/64 and decays powers of two, so that sums of them are exact: two ways of adding the
same scores never differ by rounding, and ties are real ties.
"""

from __future__ import annotations

from hypothesis import strategies as st

from spanshot.types import ScoredSpan, Span

LABELS = ("person", "city", "date")


def spans(words: int = 12, longest: int = 6) -> st.SearchStrategy[Span]:
    """Any span of a sentence with so many words."""
    bounds = [(start, start + n) for n in range(1, longest + 1) for start in range(words - n + 1)]
    return st.sampled_from([Span(start, end, label) for start, end in bounds for label in LABELS])


def scores() -> st.SearchStrategy[float]:
    return st.sampled_from([n / 64 for n in range(65)])


def scored_spans(words: int = 12, longest: int = 6, max_size: int = 10) -> st.SearchStrategy[list[ScoredSpan]]:
    """Candidates of one sentence: no span twice, in any order."""
    one = st.builds(ScoredSpan, spans(words, longest), scores())
    return st.lists(one, unique_by=lambda s: s.span, max_size=max_size)


def overlaps() -> st.SearchStrategy[float]:
    return st.sampled_from([1e-5, 0.1, 0.25, 0.5, 1.0])


def decays() -> st.SearchStrategy[float]:
    return st.sampled_from([0.0, 2**-17, 0.25, 0.5, 1.0])


def thresholds() -> st.SearchStrategy[float]:
    return st.sampled_from([0.0, 0.125, 0.375])


@st.composite
def flat_spans(draw: st.DrawFn, words: int) -> list[Span]:
    """Spans of one sentence without a shared word, as tag schemes can write them."""
    found: list[Span] = []
    start = 0
    while start < words:
        length = draw(st.integers(1, 3))
        if start + length <= words and draw(st.booleans()):
            found.append(Span(start, start + length, draw(st.sampled_from(LABELS))))
        start += length
    return found
