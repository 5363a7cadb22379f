"""Draw the pictures of the documentation into docs/pictures/.

    python tools/draw_pictures.py

`highlights.svg` shows the output of `spanshot tag`, and `data-flow.svg` the way from examples to entities. `task.svg`,
`architecture.svg` and `beam-soft-nms-paper.svg` are the figures of the paper as diagrams of our own. The curves on
the page of results are drawn by `benchmarks/accuracy.py`.
"""

from __future__ import annotations

from pathlib import Path

from draw_beam import paper_example
from draw_highlights import highlights
from draw_paper import architecture, task
from svg import AMBER, BLUE, CARD, GREEN, Picture

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def data_flow() -> Picture:
    """Draw how examples and a new text become entities."""
    picture = Picture(960, 470, "From examples and new text to entities")
    lanes = [
        (70, BLUE, "Examples", ["“[Steve Jobs](PER) founded", "[Apple](ORG) in California.”"]),
        (230, GREEN, "New text", ["“Albert Einstein taught at", "Princeton University.”"]),
    ]
    spans = {
        "Examples": ["spans of each label,", "and unmarked spans"],
        "New text": ["every span of", "up to 12 words"],
    }
    for y, fill, name, lines in lanes:
        picture.text(30, y - 16, name, 16, bold=True)
        picture.labelled(30, y, 228, 84, lines, fill, heading=False)
        picture.labelled(298, y, 150, 84, ["Encoder", "words → vectors"], fill)
        picture.labelled(488, y, 190, 84, ["Span vectors", *spans[name]], fill)
        picture.arrow(258, y + 42, 296, y + 42)
        picture.arrow(448, y + 42, 486, y + 42)
    head = ["Linear classifiers", "one per label, fitted to", "the examples, starting", "from the label's name"]
    picture.labelled(722, 128, 210, 128, head, AMBER)
    picture.arrow(678, 112, 720, 166)
    picture.arrow(678, 272, 720, 218)
    picture.labelled(722, 346, 210, 84, ["Scores", "a probability per span", "and label, with reasons"], CARD)
    picture.arrow(827, 256, 827, 344)
    picture.labelled(416, 346, 250, 84, ["Choose", "best first, above the", "threshold, no overlaps"], CARD)
    picture.arrow(722, 388, 668, 388)
    picture.labelled(30, 346, 330, 84, ["Entities", "Albert Einstein → PER", "because of “Steve Jobs”"], CARD)
    picture.arrow(416, 388, 362, 388)
    return picture


def main() -> None:
    """Draw all pictures."""
    PICTURES.mkdir(exist_ok=True)
    documents = {
        "highlights.svg": highlights(),
        "data-flow.svg": data_flow().svg(),
        "beam-soft-nms-paper.svg": paper_example().svg(),
        "task.svg": task().svg(),
        "architecture.svg": architecture().svg(),
    }
    for name, document in documents.items():
        (PICTURES / name).write_text(document, encoding="utf-8", newline="\n")
        print(PICTURES / name)


if __name__ == "__main__":
    main()
