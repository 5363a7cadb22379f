"""Convert word tags to spans and back. A scheme is a table of the tags that may follow each other.

A tag is a prefix and a label: ``B-city`` is ("B", "city"). IO writes the label alone (``city``), which is read as if it
had the prefix I; ``O`` is outside of every span.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from spanshot.errors import ConfigError, DataError, did_you_mean
from spanshot.types import OUTSIDE, Span

Pair = tuple[str, str]


def _pairs(before: str, after: str) -> frozenset[Pair]:
    """Return every prefix of ``before`` with every prefix of ``after``."""
    return frozenset(product(before, after))


@dataclass(frozen=True, slots=True)
class Scheme:
    """A tag scheme: how tags mark where spans begin and end."""

    name: str
    prefixes: str
    """The prefixes before a dash; empty if the label is the whole tag."""
    single: str
    """Prefix of a span of one word."""
    first: str
    inner: str
    last: str
    joins: frozenset[Pair]
    """Prefixes of neighbours that belong to one span, if they have the same label."""
    parts: frozenset[Pair]
    """Prefixes of neighbours that a well-formed sequence may have where no span continues."""

    def split(self, tag: str) -> Pair | None:
        """Return the prefix and the label of a tag; None if the scheme has no such tag."""
        if tag == OUTSIDE:
            return OUTSIDE, ""
        if not self.prefixes:
            return (self.inner, tag) if tag else None
        prefix, dash, label = tag.partition("-")
        valid = len(prefix) == 1 and prefix in self.prefixes
        return (prefix, label) if valid and dash and label else None

    def tag(self, prefix: str, label: str) -> str:
        """Return the tag of a prefix and a label."""
        return f"{prefix}-{label}" if self.prefixes else label

    @property
    def shape(self) -> str:
        """The form of the scheme's tags, for messages."""
        return ", ".join([OUTSIDE, *(f"{p}-LABEL" for p in self.prefixes)]) if self.prefixes else "O, LABEL"


# I or E of the same label continues B and I; everything else ends the span. Reading is lenient, as in conlleval and
# seqeval: an I or E that continues nothing begins a span.
_JOINS = _pairs("BI", "IE")

SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("io", "", single="I", first="I", inner="I", last="I", joins=_JOINS, parts=_pairs("OI", "OI")),
        Scheme("bio", "BI", single="B", first="B", inner="I", last="I", joins=_JOINS, parts=_pairs("OBI", "OB")),
        Scheme(
            "bioes",
            "BIES",
            single="S",
            first="B",
            inner="I",
            last="E",
            joins=_JOINS,
            parts=_pairs("OES", "OBS"),
        ),
    )
}


def find_scheme(name: str) -> Scheme:
    """Return the scheme of that name, in upper or lower case."""
    if scheme := SCHEMES.get(name.lower()):
        return scheme
    raise ConfigError(
        f"unknown tag scheme {name!r}: choose one of {', '.join(SCHEMES)}{did_you_mean(name.lower(), SCHEMES)}"
    )


def guess_scheme(sequences: Iterable[Iterable[str]]) -> str:
    """Guess the scheme of tags.

    One B- or I- is enough for BIO, and an E- or S- beside it for BIOES. Few-NERD's ``organization-other`` has no such
    prefix and is IO, and so is ``E-mail`` in a file whose other tags have no prefix either.
    """
    tags = {tag for sequence in sequences for tag in sequence} - {OUTSIDE}
    prefixed = {tag[0] for tag in tags if tag[:1] in SCHEMES["bioes"].prefixes and tag[1:2] == "-" and tag[2:]}
    all_prefixed = bool(tags) and all(SCHEMES["bioes"].split(tag) for tag in tags)
    if not prefixed & set("BI") and not all_prefixed:
        return "io"
    return "bioes" if prefixed & set("ES") else "bio"


def spans_from_tags(tags: Sequence[str], scheme: str, *, strict: bool = False) -> tuple[Span, ...]:
    """Return the spans that tags mark. ``strict`` rejects sequences that are not well-formed.

    >>> spans_from_tags(["O", "B-city", "I-city", "B-city"], "bio")
    (Span(start=1, end=3, label='city'), Span(start=3, end=4, label='city'))
    """
    table = find_scheme(scheme)
    outside = (OUTSIDE, "")
    marks = [outside]  # one before and one after the sentence, so that its edges are no special case
    for position, tag in enumerate(tags):
        if (mark := table.split(tag)) is None:
            raise DataError(f"word {position + 1}: {unknown_tag(tag, table)}")
        marks.append(mark)
    marks.append(outside)

    spans = []
    start = 0
    for position, ((prefix, label), (next_prefix, next_label)) in enumerate(pairwise(marks)):
        pair = (prefix, next_prefix)
        if label == next_label and pair in table.joins:
            continue
        if strict and pair not in table.parts:
            examples = [table.tag(*mark) if mark[1] else OUTSIDE for mark in marks[position : position + 2]]
            raise DataError(
                f"word {min(position + 1, len(tags))}: {examples[1]!r} cannot follow {examples[0]!r} in "
                f"well-formed {table.name} tags; correct the tags or read them leniently"
            )
        if prefix != OUTSIDE:
            spans.append(Span(start, position, label))
        start = position  # marks[position + 1] is word `position`
    return tuple(spans)


def unknown_tag(tag: str, scheme: Scheme) -> str:
    """Return the message for a tag that a scheme does not have."""
    return f"tag {tag!r} is not one of the {scheme.name} scheme ({scheme.shape}); correct it or name another scheme"


def tags_from_spans(length: int, spans: Iterable[Span], scheme: str) -> list[str]:
    """Return the tags of a sentence of ``length`` words. Spans must not overlap: a word has one tag.

    IO cannot separate touching spans of one label; they are read back as one.

    >>> tags_from_spans(4, [Span(1, 3, "city")], "bio")
    ['O', 'B-city', 'I-city', 'O']
    """
    table = find_scheme(scheme)
    tags = [OUTSIDE] * length
    previous: Span | None = None
    for span in sorted(spans):
        if span.end > length:
            raise DataError(f"{span} ends after the sentence's last word; it has {length} words")
        if previous and span.overlaps(previous):
            raise DataError(f"tags cannot show overlapping spans: {previous} and {span}; keep one of them")
        if len(span) == 1:
            prefixes = [table.single]
        else:
            prefixes = [table.first, *[table.inner] * (len(span) - 2), table.last]
        tags[span.start : span.end] = [table.tag(prefix, span.label) for prefix in prefixes]
        previous = span
    return tags


def tags_of_labels(labels: Iterable[str], scheme: str) -> tuple[str, ...]:
    """Return O and every tag that a word can have with these labels.

    >>> tags_of_labels(["city"], "bio")
    ('O', 'B-city', 'I-city')
    """
    table = find_scheme(scheme)
    prefixes = table.prefixes or table.inner
    return OUTSIDE, *(table.tag(prefix, label) for label in labels for prefix in prefixes)


def outermost(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the longest of overlapping spans, the first of equals: the part of nested spans that tags can show.

    >>> outermost([Span(0, 3, "paper"), Span(0, 2, "city"), Span(4, 5, "day")])
    (Span(start=0, end=3, label='paper'), Span(start=4, end=5, label='day'))
    """
    outer: list[Span] = []
    covered: set[int] = set()
    for span in sorted(spans, key=lambda span: (-len(span), span)):
        # A span that is kept is at least as long, so an overlap covers the first or the last word.
        if span.start not in covered and span.end - 1 not in covered:
            outer.append(span)
            covered.update(range(span.start, span.end))
    return tuple(sorted(outer))
