"""Show results as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from spanshot.research.experiments.reproduce.results import Cell, Result, ResultTable

LEGEND = (
    "Our figures: mean ± standard deviation over seeds, then the 95 % bootstrap interval over episodes. "
    "In square brackets: the paper's figures, with BERT-base."
)


def to_markdown(result: Result, plots: Sequence[str] = ()) -> str:
    """Return all tables, plots and remarks of an experiment. ``plots`` are the names of the files drawn."""
    parts = [f"# {result.title}", LEGEND]
    parts += [_table(table) for table in result.tables]
    parts += [f"![{chart.title}]({chart.name}.svg)" for chart in result.charts if f"{chart.name}.svg" in plots]
    if result.remarks:
        parts.append("\n".join(f"- {remark}" for remark in result.remarks))
    if result.settings:
        parts.append("\n".join(["**Settings.**", *(f"- {line}" for line in result.settings)]))
    return "\n\n".join(parts) + "\n"


def to_section(result: Result, pictures: str) -> str:
    """Return the same as part of a page: no heading, narrower columns, the settings in a box that opens on a click.

    Plots are in the folder ``pictures``, under the names of their charts.
    """
    parts = [_table(table, before_paper="<br>") for table in result.tables]
    parts += [f"![{chart.title}]({pictures}/{chart.name}.svg)" for chart in result.charts]
    if result.remarks:
        parts.append("\n".join(f"- {remark}" for remark in result.remarks))
    parts.append("\n".join(['??? example "Settings"', "", *(f"    - {line}" for line in result.settings)]))
    return "\n\n".join(parts) + "\n"


def _table(table: ResultTable, before_paper: str = " ") -> str:
    titles = [table.head, *table.columns]
    lines = [f"**{table.title}**", "", _line(titles), _line(["---"] * len(titles))]
    lines += [_line([name, *(_cell(cell, before_paper) for cell in cells)]) for name, cells in table.rows.items()]
    return "\n".join([*lines, "", table.note] if table.note else lines)


def _cell(cell: Cell | str, before_paper: str) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell.text}{before_paper}[{cell.paper_text}]" if cell.paper_text else cell.text


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
