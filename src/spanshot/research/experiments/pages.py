"""Put measured tables into Markdown pages, between marks that name the table."""

from __future__ import annotations

import re
from pathlib import Path

from spanshot.errors import DataError
from spanshot.files import write_text

_TABLE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def fill_page(text: str, tables: Path) -> str:
    """Return a page whose tables are replaced by the files ``NAME.txt`` in the folder ``tables``.

    A table that has no file stays as it is.
    """

    def table(mark: re.Match[str]) -> str:
        path = tables / f"{mark['name']}.txt"
        if not path.is_file():
            return mark[0]
        return f"{mark[1]}\n{path.read_text(encoding='utf-8').strip()}\n\n{mark[3]}"

    if text.count("<!-- table: ") != len(_TABLE.findall(text)):
        raise DataError("a '<!-- table: NAME -->' has no '<!-- end of table -->'")
    return _TABLE.sub(table, text)


def fill_pages(pages: list[Path], tables: Path) -> list[Path]:
    """Fill the tables of several pages in place; return those that changed."""
    changed = []
    for page in pages:
        old = page.read_text(encoding="utf-8")
        new = fill_page(old, tables)
        if new != old:
            write_text(page, [new])
            changed.append(page)
    return changed
