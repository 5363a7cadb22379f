"""Draw the picture of README: what `spanshot tag` shows on a terminal, as SVG."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

import spanshot
from spanshot.cli.highlights import Tagged, colours, highlighted

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "highlights.svg"


def main() -> None:
    """Tag examples/news.txt by examples/founders.txt and write docs/highlights.svg."""
    tagger = spanshot.learn(ROOT / "examples" / "founders.txt")
    texts = (ROOT / "examples" / "news.txt").read_text(encoding="utf-8").splitlines()
    out = Console(file=StringIO(), record=True, width=96, color_system="truecolor", highlight=False)
    for text, entities in zip(texts, tagger.pipe(texts), strict=True):
        out.print(highlighted(Tagged(text, entities), colours(tagger.labels)))
    title = "spanshot tag -e examples/founders.txt -i examples/news.txt"
    PICTURE.write_text(out.export_svg(title=title, theme=MONOKAI), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
