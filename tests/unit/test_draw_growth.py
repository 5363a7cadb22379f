"""The picture of F1 versus the number of examples shows the figures of its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import draw_growth

ROWS = [
    {"corpus": "movies", "system": "default", "draw": 0, "size": 5, "tp": [1, 1], "fp": [1, 1], "fn": [1, 1]},
    {"corpus": "movies", "system": "default", "draw": 1, "size": 5, "tp": [3, 3], "fp": [1, 1], "fn": [1, 1]},
    {"corpus": "movies", "system": "default", "draw": 0, "size": 50, "tp": [4, 4], "fp": [1, 1], "fn": [1, 1]},
    {"corpus": "movies", "system": "spaCy", "draw": 0, "size": 50, "tp": [0, 0], "fp": [0, 0], "fn": [0, 0]},
]


@pytest.fixture
def figures(tmp_path) -> Path:
    path = tmp_path / "growth.json"
    path.write_text(json.dumps({"rows": ROWS}), encoding="utf-8")
    return path


def test_f1_is_computed_from_the_counts_of_each_draw(figures):
    assert draw_growth.read_scores(figures) == {
        ("movies", "default"): {5: [50.0, 75.0], 50: [80.0]},
        ("movies", "spaCy"): {50: [0.0]},
    }


def test_the_line_goes_through_the_mean_of_the_draws(figures):
    picture = draw_growth.growth(figures)
    ((x, y), (_, end)) = (
        map(float, point.split(","))
        for point in next(part for part in picture.parts if "<polyline" in part).split('"')[1].split()
    )
    assert x < draw_growth.RIGHT
    assert y == pytest.approx(draw_growth._y(62.5), abs=0.1)
    assert end == pytest.approx(draw_growth._y(80), abs=0.1)
    assert any("movies 80" in part for part in picture.parts)


def test_other_systems_are_crosses_with_their_names(figures):
    assert any("spaCy" in part for part in draw_growth.growth(figures).parts)
