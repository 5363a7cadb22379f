"""Show results as one HTML page: sortable tables, plots within the page, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from spanshot.research.experiments.reproduce.markdown import LEGEND
from spanshot.research.experiments.reproduce.results import Cell, Result, ResultTable

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8886; --soft: light-dark(#555, #aaa); }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; }} h2 {{ font-size: 1.2rem; margin-top: 2.5rem; }}
.table {{ overflow-x: auto; }}
table {{ border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; font-weight: 600; padding: .4rem 0; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }}
th button {{ all: unset; cursor: pointer; }} th button:focus-visible {{ outline: 2px solid; }}
th button::after {{ content: " \\2195"; color: var(--soft); }}
th[aria-sort=ascending] button::after {{ content: " \\2191"; }}
th[aria-sort=descending] button::after {{ content: " \\2193"; }}
td small {{ display: block; color: var(--soft); }}
figure {{ margin: 1rem 0; }} figure svg {{ max-width: 100%; height: auto; background: #fff; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{legend} Click a column heading to sort.</p>
"""
_SCRIPT = """<script>
for (const button of document.querySelectorAll("th button")) button.onclick = () => {
  const heading = button.parentElement, body = heading.closest("table").tBodies[0];
  const up = heading.getAttribute("aria-sort") === "descending";
  for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  const key = row => row.children[heading.cellIndex].dataset.key;
  const compare = (a, b) => a === "" || b === "" ? (a === "") - (b === "")
    : isNaN(a) || isNaN(b) ? (up ? 1 : -1) * a.localeCompare(b) : (up ? 1 : -1) * (a - b);
  body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
};
</script>
</body>
</html>
"""


def to_page(title: str, results: Sequence[Result], plots: Mapping[str, str]) -> str:
    """Return a page with the results of some experiments. ``plots`` are SVG documents by the name of their chart."""
    parts = [_HEAD.format(title=escape(title), legend=escape(LEGEND))]
    for result in results:
        parts.append(f'<h2 id="{escape(result.name)}">{escape(result.title)}</h2>\n')
        parts += [_table(table) for table in result.tables]
        parts += [_figure(plots[chart.name], chart.name) for chart in result.charts if chart.name in plots]
        parts.append(_list("", result.remarks))
        parts.append(_list("<h3>Settings</h3>\n", result.settings))
    return "".join([*parts, _SCRIPT])


def _table(table: ResultTable) -> str:
    headings = "".join(f'<th scope="col"><button>{escape(name)}</button></th>' for name in (table.head, *table.columns))
    rows = "".join(
        f'<tr><td data-key="{escape(name)}">{escape(name)}</td>{"".join(map(_cell, cells))}</tr>\n'
        for name, cells in table.rows.items()
    )
    note = f"<p>{escape(table.note)}</p>\n" if table.note else ""
    return (
        f'<div class="table"><table>\n<caption>{escape(table.title)}</caption>\n<thead><tr>{headings}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table></div>\n{note}"
    )


def _cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return f'<td data-key="{escape(cell)}">{escape(cell)}</td>'
    key = "" if cell.ours is None else repr(cell.scale * cell.ours.mean)
    paper = f"<small>[{escape(cell.paper_text)}]</small>" if cell.paper_text else ""
    return f'<td data-key="{key}">{escape(cell.text)}{paper}</td>'


def _figure(svg: str, name: str) -> str:
    """Return an SVG document as part of a page. Its ids get the chart's name, since a page may have several."""
    start = svg.index("<svg")
    inner = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg[start:])
    return f"<figure>\n{inner}</figure>\n"


def _list(heading: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>\n" for line in lines)
    return f"{heading}<ul>\n{items}</ul>\n" if lines else ""
