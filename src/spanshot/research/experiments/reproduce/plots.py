"""Draw charts as SVG with matplotlib, legible in black and white: lines and bars differ in marker, dash and hatch."""

from __future__ import annotations

import io
from itertools import cycle
from typing import TYPE_CHECKING

from spanshot.research.experiments.reproduce.results import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (7.5, 4.2)
GREYS = ("0.1", "0.35", "0.5", "0.65")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":")
HATCHES = ("", "//", "..", "xx", "\\\\", "++")


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    import importlib.util

    return importlib.util.find_spec("matplotlib") is not None


def draw(chart: Chart) -> str:
    """Return the chart as an SVG document. The same figures always give the same document."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.rcsetup import cycler

    # Not through pyplot, which has a state of its own. With the salt, ids in the document are always the same. The
    # cycle is for marks that take their colour from it, such as the caps of error bars.
    with matplotlib.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "spanshot",
            "font.size": 11.0,
            "hatch.linewidth": 0.6,
            "axes.prop_cycle": cycler(color=[GREYS[0]]),
        }
    ):
        figure = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasSVG(figure)  # attaches itself to the figure
        axes = figure.subplots()
        if all(isinstance(x, str) for x in chart.xs):
            _draw_bars(axes, chart)
        else:
            _draw_lines(axes, chart)
        axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="0.85", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False)
        document = io.BytesIO()
        figure.savefig(document, format="svg", metadata={"Date": None, "Creator": None})
    return document.getvalue().decode("utf-8")


def _draw_lines(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    xs = [float(x) for x in chart.xs]
    for curve, grey, marker, dash in zip(chart.curves, cycle(GREYS), cycle(MARKERS), cycle(DASHES)):
        axes.plot(xs, curve.means, color=grey, marker=marker, linestyle=dash, label=curve.name)
        if curve.deviations:
            low = [mean - half for mean, half in zip(curve.means, curve.deviations, strict=True)]
            high = [mean + half for mean, half in zip(curve.means, curve.deviations, strict=True)]
            axes.fill_between(xs, low, high, color=grey, alpha=0.15, linewidth=0)
    if all(x.is_integer() for x in xs):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_bars(axes: Axes, chart: Chart) -> None:
    width = 0.8 / max(1, len(chart.curves))
    for number, (curve, hatch) in enumerate(zip(chart.curves, cycle(HATCHES))):
        places = [place + width * (number - (len(chart.curves) - 1) / 2) for place in range(len(chart.xs))]
        shade = str(0.95 - 0.6 * number / max(1, len(chart.curves)))
        errors = curve.deviations or None
        axes.bar(
            places,
            curve.means,
            width,
            yerr=errors,
            capsize=2,
            ecolor="0.1",
            color=shade,
            edgecolor="0.1",
            linewidth=0.8,
            hatch=hatch,
            label=curve.name,
        )
    axes.set_xticks(range(len(chart.xs)), [str(x) for x in chart.xs])
