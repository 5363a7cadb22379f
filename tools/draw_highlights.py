"""Draw the output of `spanshot tag` on a terminal as SVG."""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

import spanshot
from spanshot.cli.highlights import Tagged, colours, highlighted
from spanshot.formats.inline import write_inline

ROOT = Path(__file__).parents[1]
GOLD = """
[Marie Curie](PERSON) left [Warsaw](PLACE) for [Paris](PLACE) in 1891.
In 2004 [Mark Zuckerberg](PERSON) started [Facebook](COMPANY) in [Massachusetts](PLACE).
[Siemens](COMPANY) moved from [Berlin](PLACE) to [Munich](PLACE) after the war.
[Larry Page](PERSON) began [Google](COMPANY) in a garage in [Menlo Park](PLACE).
[Ingvar Kamprad](PERSON) grew up in [Sweden](PLACE) and founded [IKEA](COMPANY).
It rained all day, and nothing else happened.
"""
"""The right annotation of examples/news.txt."""
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def highlights() -> str:
    """Tag examples/news.txt with examples/founders.txt and return the terminal as SVG, without remote fonts.

    The README must not show a wrong tag: exit if an entity is missed or wrong.
    """
    tagger = spanshot.learn(ROOT / "examples" / "founders.txt")
    texts = (ROOT / "examples" / "news.txt").read_text(encoding="utf-8").splitlines()
    out = Console(file=StringIO(), record=True, width=80, color_system="truecolor", highlight=False)
    for text, entities, gold in zip(texts, tagger.pipe(texts), GOLD.strip().splitlines(), strict=True):
        markup = write_inline(text, [(entity.start, entity.end, entity.label) for entity in entities])
        if markup != gold:
            sys.exit(f"examples/news.txt: expected {gold!r}, but the model finds {markup!r}; choose another sentence")
        out.print(highlighted(Tagged(text, entities), colours(tagger.labels)))
    title = "spanshot tag -e examples/founders.txt -i examples/news.txt"
    return FONT_FACE.sub("", out.export_svg(title=title, theme=MONOKAI, unique_id="highlights"))
