"""Write the results of experiments: Markdown, HTML, JSON and plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spanshot.files import write_text
from spanshot.json_text import to_json
from spanshot.research.experiments.reproduce.markdown import to_markdown
from spanshot.research.experiments.reproduce.page import to_page
from spanshot.research.experiments.reproduce.plots import can_draw, draw
from spanshot.research.experiments.reproduce.results import Result


def write_result(result: Result, out: Path) -> dict[str, str]:
    """Write one experiment to ``out/NAME``; return its plots, SVG documents by name of the chart."""
    folder = out / result.name
    folder.mkdir(parents=True, exist_ok=True)
    plots = {chart.name: draw(chart) for chart in result.charts} if can_draw() else {}
    for name, document in plots.items():
        write_text(folder / f"{name}.svg", [document])
    write_text(folder / "results.md", [to_markdown(result, [f"{name}.svg" for name in plots])])
    write_text(folder / "results.json", [to_json(result.to_dict(), indent=1), "\n"])
    write_text(folder / "results.html", [to_page(result.title, [result], plots)])
    return plots


def write_results(results: Sequence[Result], out: Path) -> None:
    """Write each experiment, and a page with all of them."""
    plots: dict[str, str] = {}
    for result in results:
        plots |= write_result(result, out)
    if len(results) > 1:
        write_text(out / "index.html", [to_page("The tables and figures of ESD's paper", results, plots)])
