"""The command that measures accuracy: ``benchmarks/accuracy.py``."""

import importlib.util
from pathlib import Path

import pytest
from typer.testing import CliRunner

COMMAND = Path(__file__).parents[2] / "benchmarks" / "accuracy.py"


@pytest.fixture(scope="module")
def app():
    spec = importlib.util.spec_from_file_location("accuracy", COMMAND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


def test_every_table_of_the_results_page_has_a_command(app):
    page = (COMMAND.parents[1] / "docs" / "results.md").read_text(encoding="utf-8")
    shown = CliRunner().invoke(app, ["--help"]).output
    used = [line.split("accuracy.py ")[1].split()[0] for line in page.splitlines() if "accuracy.py " in line]
    assert used
    assert all(name in shown for name in used)


@pytest.mark.parametrize("name", ["user-like", "growth", "calibration", "fit-scores", "episodes", "heads", "cost"])
def test_each_command_explains_its_arguments(app, name):
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0
    assert "--out" in shown.output


def test_pages_are_filled_in_place(app, tmp_path):
    (tmp_path / "heads.txt").write_text("| measured |", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text("<!-- table: heads -->\n<!-- end of table -->\n", encoding="utf-8")
    shown = CliRunner().invoke(app, ["pages", str(page), "--tables", str(tmp_path)])
    assert shown.exit_code == 0
    assert "| measured |" in page.read_text(encoding="utf-8")
