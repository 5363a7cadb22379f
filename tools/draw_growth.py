"""Draw F1 versus the number of examples, from the figures in docs/results/growth.json."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from svg import Picture

FIGURES = Path(__file__).parents[1] / "docs" / "results" / "growth.json"
DEFAULT = "default"
"""The system that is drawn as lines: the packaged model. Others are drawn as crosses."""
COLOURS = ("#1d4ed8", "#b45309", "#15803d", "#7e22ce", "#be123c")
DASHES = ("", "8 4", "2 4", "10 3 2 3", "5 5")
LEFT, RIGHT, TOP, BOTTOM = 76, 760, 66, 400
Scores = Mapping[int, Sequence[float]]  # number of examples -> F1 of each draw


def read_scores(path: Path) -> dict[tuple[str, str], dict[int, list[float]]]:
    """Return the F1 of each draw in percent, by corpus and system, then by number of examples."""
    scores: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        correct, errors = sum(row["tp"]), sum(row["fp"]) + sum(row["fn"])
        scores[row["corpus"], row["system"]][row["size"]].append(200 * correct / (2 * correct + errors or 1))
    return {key: dict(by_size) for key, by_size in sorted(scores.items())}


def growth(path: Path = FIGURES) -> Picture:
    """Draw a line per corpus, with the range over draws of examples behind it."""
    scores = read_scores(path)
    sizes = sorted({size for by_size in scores.values() for size in by_size})
    picture = Picture(960, 470, "F1 versus number of examples")
    picture.text(LEFT - 46, 36, "F1 versus number of examples", 16, bold=True)
    picture.text(LEFT - 46, 54, "packaged model, texts and labels that no training used", 13, faded=True)
    for f1 in range(0, 101, 20):
        picture.line(LEFT, _y(f1), RIGHT, _y(f1))
        picture.text(LEFT - 10, _y(f1) + 5, str(f1), 13, "end", faded=True)
    for size in sizes:
        picture.text(_x(size, sizes), BOTTOM + 22, str(size), 13, "middle", faded=True)
    picture.text((LEFT + RIGHT) / 2, BOTTOM + 48, "example texts", 14, "middle")
    if others := sorted({system for _, system in scores} - {DEFAULT}):
        picture.text(RIGHT, BOTTOM + 48, f"\u00d7 {', '.join(others)}", 13, "end", faded=True)
    ends = {}
    corpora = [corpus for corpus, system in scores if system == DEFAULT]
    for number, corpus in enumerate(corpora):
        _curve(picture, scores[corpus, DEFAULT], sizes, number)
        ends[corpus] = fmean(scores[corpus, DEFAULT][max(scores[corpus, DEFAULT])])
        for other in sorted(system for name, system in scores if name == corpus and system != DEFAULT):
            _crosses(picture, scores[corpus, other], sizes, number)
    for corpus, y in _apart({corpus: _y(f1) for corpus, f1 in ends.items()}).items():
        number = corpora.index(corpus)
        picture.text(RIGHT + 16, y + 5, f"{corpus} {ends[corpus]:.0f}", 14, colour=COLOURS[number % len(COLOURS)])
    return picture


def _curve(picture: Picture, scores: Scores, sizes: Sequence[int], number: int) -> None:
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    known = sorted(scores)
    low = [(_x(size, sizes), _y(min(scores[size]))) for size in known]
    high = [(_x(size, sizes), _y(max(scores[size]))) for size in known]
    picture.polygon([*low, *reversed(high)], colour)
    means = [(_x(size, sizes), _y(fmean(scores[size]))) for size in known]
    picture.polyline(means, colour, dash)
    for x, y in means:
        picture.dot(x, y, colour)


def _crosses(picture: Picture, scores: Scores, sizes: Sequence[int], number: int) -> None:
    for size in sorted(scores):
        x, y = _x(size, sizes), _y(fmean(scores[size]))
        picture.text(x, y + 6, "\u00d7", 20, "middle", bold=True, colour=COLOURS[number % len(COLOURS)])


def _x(size: int, sizes: Sequence[int]) -> float:
    """Return the place of a number of examples, on a logarithmic scale."""
    if len(sizes) == 1:
        return (LEFT + RIGHT) / 2
    share = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])
    return LEFT + 12 + share * (RIGHT - LEFT - 24)


def _y(f1: float) -> float:
    return BOTTOM - f1 / 100 * (BOTTOM - TOP - 14)


def _apart(places: Mapping[str, float], gap: float = 19) -> dict[str, float]:
    """Move labels down so that none covers another.

    >>> _apart({"a": 100, "b": 105})
    {'a': 100, 'b': 119}
    """
    moved: dict[str, float] = {}
    for name, y in sorted(places.items(), key=lambda item: item[1]):
        moved[name] = max([y, *(other + gap for other in moved.values())])
    return moved
