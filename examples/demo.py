"""Learn from eight sentences, tag new text, and show the reasons.

Run it with `make demo`.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

import spanshot
from spanshot.cli.highlights import Tagged, page, show_highlights

HERE = Path(__file__).parent
PAGE = Path("runs/demo.html")


def main() -> None:
    """Learn, tag, print and write an HTML page."""
    out = Console(highlight=False)
    examples = HERE / "founders.txt"
    tagger = spanshot.learn(examples)
    out.print(f"Learned {', '.join(tagger.labels)} from {len(tagger.support.sentences)} sentences in {examples.name}.")

    texts = (HERE / "news.txt").read_text(encoding="utf-8").splitlines()
    documents = [Tagged(text, entities) for text, entities in zip(texts, tagger.pipe(texts), strict=True)]
    out.print("New sentences, tagged:\n")
    show_highlights(out, documents, tagger.labels)

    entity = next(entity for document in documents for entity in document.entities)
    out.print(f"\nWhy is {entity.text!r} a {entity.label} ({entity.score:.0%} sure)? Because of", markup=False)
    for reason in entity.because:
        source = {"name": f"the name {reason.text!r}", "rest": "everything else"}.get(reason.kind)
        source = source or f"{reason.text!r} in: {reason.example}"
        out.print(f"  {reason.weight:+.1f}  {source}", markup=False, soft_wrap=True)

    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("".join(page(documents, tagger.labels, "spanshot: a first look")), encoding="utf-8")
    out.print(f"\nHTML page with the reasons for every entity: {PAGE}")


if __name__ == "__main__":
    main()
