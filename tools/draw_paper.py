"""Draw the task and the architecture of ESD's paper (its figures 1 and 2) as diagrams of our own."""

from __future__ import annotations

from collections.abc import Sequence

from svg import AMBER, BLUE, CARD, GREEN, Picture, text_width

Marked = Sequence[tuple[str, str]]
"""The parts of a sentence, each with its label; empty: none."""
SUPPORT: tuple[Marked, ...] = (
    (("Steve Jobs", "PER"), ("founded", ""), ("Apple", "ORG"), ("in a garage.", "")),
    (("Isaac Newton", "PER"), ("studied at", ""), ("Trinity College", "ORG"), (".", "")),
)
QUERY: Marked = (("Albert Einstein", "PER"), ("played the violin.", ""))
FILLS = {"PER": BLUE, "ORG": GREEN}


def task() -> Picture:
    """Draw a 2-way 2-shot task."""
    picture = Picture(960, 380, "A 2-way 2-shot task")
    picture.text(30, 40, "Support set: two labels, two examples of each", 16, bold=True)
    for number, sentence in enumerate(SUPPORT):
        _sentence(picture, 40, 64 + 78 * number, f"S{number + 1}", sentence)
    picture.arrow(480, 226, 480, 262)
    picture.text(500, 250, "learn the labels from these examples, without training", 13.5, faded=True)
    picture.text(30, 284, "Query: find these labels in a new sentence", 16, bold=True)
    _sentence(picture, 40, 302, "q", QUERY)
    return picture


def _sentence(picture: Picture, x: float, y: float, name: str, parts: Marked) -> None:
    picture.text(x, y + 24, name, 16, bold=True)
    x += 44
    for words, label in parts:
        width = text_width(words, 16) + (24 if label else 12)
        if label:
            picture.box(x, y, width, 34, FILLS[label])
            picture.text(x + width / 2, y + 52, label, 13, "middle", bold=True)
        picture.text(x + width / 2, y + 23, words, 16, "middle")
        x += width + 10


def architecture() -> Picture:
    """Draw the five modules of ESD."""
    picture = Picture(960, 620, "The five modules of ESD")
    rows = (
        (
            "1  Span initialization",
            ("Encoder", "words → vectors"),
            ("Spans", "of up to 8 words: first and", "last word, one linear map"),
        ),
        (
            "2  Span enhancing",
            ("Intra span attention", "spans attend to the spans", "of their sentence"),
            ("Cross span attention", "query spans attend to support", "spans, and the other way"),
        ),
        (
            "3  Span prototypes",
            ("Instance span attention", "a prototype of each class", "for each query span"),
            ("O in three parts", "apart from, inside and across", "entities; joined by attention"),
        ),
        (
            "4  Span matching",
            ("Distances", "of a query span to", "the prototypes"),
            ("Probabilities", "softmax over O", "and the labels"),
        ),
        (
            "5  Span refining",
            ("Beam Soft-NMS", "chooses among spans", "that overlap"),
            ("Entities", "“Albert Einstein” → PER", "every other span → O"),
        ),
    )
    for number, (name, left, right) in enumerate(rows):
        y = 24 + 118 * number
        fill = AMBER if number == 1 else BLUE if number == 2 else CARD
        picture.text(30, y + 48, name, 16, bold=True)
        picture.labelled(250, y, 310, 84, list(left), fill)
        picture.labelled(620, y, 310, 84, list(right), fill)
        picture.arrow(560, y + 42, 618, y + 42)
        if number < len(rows) - 1:
            picture.arrow(650, y + 84, 530, y + 116)
    return picture
