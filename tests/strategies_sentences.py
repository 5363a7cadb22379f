"""Hypothesis strategies for words, spans, sentences and episodes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from spanshot.types import Episode, Sentence, Span, SupportSet
from spanshot.words import words_of

LABELS = ("city", "event-other", "I", "B-side")
labels = st.sampled_from(LABELS)
# Any text but lone surrogates, which no UTF-8 file can hold.
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


# Texts that break readers: combining marks, emoji, scripts, line ends, pieces of markup.
PIECES = [
    "Zoë",
    "e\u0301",
    "👩‍👩‍👧",
    "שלום",
    "می‌خواهم",
    "東京",
    "O",
    "\r\n",
    "\n",
    "\r",
    " ",
    "\u00a0",
    "\u2028",
    "[",
    "](",
    "\\",
]
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=15).map("".join),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
).filter(lambda text: words_of(text))


@st.composite
def flat_spans(draw: st.DrawFn, length: int) -> tuple[Span, ...]:
    """Spans side by side: some touch, none overlap."""
    cuts = sorted(draw(st.sets(st.integers(0, length), max_size=8)))
    return tuple(Span(start, end, draw(labels)) for start, end in pairwise(cuts) if draw(st.booleans()))


@st.composite
def any_spans(draw: st.DrawFn, length: int) -> tuple[Span, ...]:
    """Spans that may nest and cross."""
    bounds = st.tuples(st.integers(0, length), st.integers(0, length)).filter(lambda pair: pair[0] != pair[1])
    pairs = draw(st.lists(bounds, max_size=4))
    return tuple(Span(min(pair), max(pair), draw(labels)) for pair in pairs)


@st.composite
def sentences(draw: st.DrawFn, spans=any_spans, max_words: int = 10) -> Sentence:
    chosen = draw(st.lists(words, min_size=1, max_size=max_words))
    return Sentence(tuple(chosen), draw(spans(len(chosen))))


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    """Episodes of any shape that the types allow: nested spans, labels in any order, a query of one to four."""
    support = draw(st.lists(sentences(), min_size=1, max_size=4).filter(lambda some: any(s.spans for s in some)))
    known = sorted({span.label for sentence in support for span in sentence.spans})
    query = [
        Sentence(sentence.words, tuple(span for span in sentence.spans if span.label in known))
        for sentence in draw(st.lists(sentences(), min_size=1, max_size=4))
    ]
    order = draw(st.permutations(known))
    return Episode(SupportSet(tuple(order), tuple(support)), tuple(query), draw(st.sampled_from(["", "PlayMusic"])))


def tag_lists(prefixes: str) -> st.SearchStrategy[list[str]]:
    """Tags in any order, most of them ill-formed."""
    return st.lists(st.sampled_from(["O", *(f"{p}-{label}" for p in prefixes for label in LABELS)]), max_size=12)


@st.composite
def corpora(draw: st.DrawFn, shots: int = 5) -> list[Sentence]:
    """Sentences of few words, so that texts repeat, and ``shots`` more for every label with just that one."""
    found = []
    for chosen in draw(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), max_size=20)):
        found.append(Sentence(tuple(chosen), draw(flat_spans(len(chosen)))))
    plain = [Sentence((label, str(n)), (Span(0, 1, label),)) for label in LABELS for n in range(shots)]
    return [*found, *plain]
