"""Figures of the results as SVG files; needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from spanshot.optional import missing
from spanshot.research.experiments.calibration import Reliability
from spanshot.research.experiments.growth import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_growth(curves: Iterable[Curve], path: Path) -> None:
    """Draw F1 over the number of examples: lines for curves, points for systems measured once."""
    figure, axes = _new_axes(6.4, 4.0)
    curves = list(curves)
    colours: dict[str, str] = {}
    for curve in curves:
        colour = colours.setdefault(curve.corpus, f"C{len(colours)}")
        sizes = sorted(curve.counts)
        means = [fmean(curve.f1(size)) for size in sizes]
        style = "o-" if len(sizes) > 1 else "x"
        axes.plot(sizes, means, style, color=colour, label=f"{curve.corpus}, {curve.system}")
        if len(sizes) > 1:
            low, high = ([limit(curve.f1(size)) for size in sizes] for limit in (min, max))
            axes.fill_between(sizes, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set_xscale("log")
    ticks = sorted({size for curve in curves for size in curve.counts})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("example texts")
    axes.set_ylabel("F1")
    axes.legend(fontsize=8)
    _save(figure, path)


def plot_reliability(reliabilities: Mapping[tuple[int, str], Reliability], path: Path) -> None:
    """Draw accuracy over score; the diagonal is perfect."""
    figure, axes = _new_axes(4.6, 5.0)
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle="--")
    for (shots, kind), reliability in sorted(reliabilities.items()):
        label = f"{shots} per label, {kind} (error {reliability.error:.3f})"
        axes.plot([b[0] for b in reliability.bins], [b[1] for b in reliability.bins], "o-", markersize=4, label=label)
    axes.set_xlabel("score")
    axes.set_ylabel("share of entities that are right")
    figure.legend(fontsize=7, loc="outside lower center")
    _save(figure, path)


def _new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise missing("matplotlib", "reproduce", "plotting") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(alpha=0.3)
    return figure, axes


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
