"""Draw the output of `spanshot tag` on a terminal as SVG."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

import spanshot
from spanshot.cli.highlights import Tagged, colours, highlighted

ROOT = Path(__file__).parents[1]
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def highlights() -> str:
    """Tag examples/news.txt with examples/founders.txt and return the terminal as SVG, without remote fonts."""
    tagger = spanshot.learn(ROOT / "examples" / "founders.txt")
    texts = (ROOT / "examples" / "news.txt").read_text(encoding="utf-8").splitlines()
    out = Console(file=StringIO(), record=True, width=96, color_system="truecolor", highlight=False)
    for text, entities in zip(texts, tagger.pipe(texts), strict=True):
        out.print(highlighted(Tagged(text, entities), colours(tagger.labels)))
    title = "spanshot tag -e examples/founders.txt -i examples/news.txt"
    return FONT_FACE.sub("", out.export_svg(title=title, theme=MONOKAI, unique_id="highlights"))
