"""Find the code blocks of a Markdown page, for the tests and tools that run them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent>[ ]*)```(?P<language>\w*)(?P<options>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)
TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    page: str
    line: int
    """Line of the page on which the code starts."""
    language: str
    title: str
    """File name given as `title="…"`, or an empty string."""
    code: str
    span: tuple[int, int] = (0, 0)
    """Position of the code in the page, in characters."""
    indent: str = ""


def blocks(path: Path) -> list[Block]:
    """Return the fenced code blocks of a page, in order."""
    text = path.read_text(encoding="utf-8")
    result = []
    for match in FENCE.finditer(text):
        title = TITLE.search(match["options"])
        line = text.count("\n", 0, match.start()) + 2
        code = textwrap.dedent(match["code"])
        name = title[1] if title else ""
        result.append(Block(path.name, line, match["language"], name, code, match.span("code"), match["indent"]))
    return result


def with_output(page: list[Block]) -> list[tuple[Block, str | None]]:
    """Return each Python block with its output: the untitled `text` block that follows it, if there is one."""
    following = [*page[1:], None]
    pairs = []
    for block, after in zip(page, following, strict=True):
        if block.language == "python":
            is_output = after is not None and after.language == "text" and not after.title
            pairs.append((block, after.code if is_output and after is not None else None))
    return pairs
