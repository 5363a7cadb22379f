"""The code in the README and the documentation runs and prints what the pages say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from markdown_blocks import blocks
from page_outputs import PAGES, RECORDS, ROOT, commands, outputs, spanshot_arguments
from spanshot.cli.main import COMMANDS, load_command
from write_cli_reference import PAGE, reference

# Pages about optional packages, and the modules that they need. `spanshot.integrations.spacy` replaces the entry point
# by which spaCy finds the component of an installed package.
PACKAGES = {
    "docs/integrations/tables.md": ["pandas", "pyarrow", "datasets"],
    "docs/integrations/spacy.md": ["spacy", "spanshot.integrations.spacy"],
    "docs/integrations/scikit-learn.md": ["sklearn"],
    "docs/integrations/migration.md": ["datasets"],
}


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def check_arguments(arguments: list[str]) -> None:
    """Check that a command and its options exist, without running it."""
    name, *rest = arguments
    if name.startswith("-"):
        return
    assert name in COMMANDS, f"no command {name!r}"
    parameters = load_command(name).params
    known = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    used = {word.split("=")[0] for word in rest if word.startswith("-") and word != "-"}
    assert used <= known | {"--help"}, f"spanshot {name} has no option {', '.join(sorted(used - known))}"


@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in RECORDS], ids=page_name)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(path, tmp_path, monkeypatch):
    page = blocks(path)
    if not any(block.language in {"python", "sh"} for block in page):
        pytest.skip("no code")
    for module in PACKAGES.get(page_name(path), []):
        pytest.importorskip(module)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for block, output in outputs(page):
        assert output.strip() == block.code.strip(), f"line {block.line}; `python tools/page_outputs.py` updates pages"


@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in RECORDS], ids=page_name)
def test_every_command_of_a_page_exists_with_its_options(path):
    for block in blocks(path):
        if block.language == "sh":
            for command in commands(block.code):
                for part in command.split("|"):
                    arguments = spanshot_arguments(part.split(">")[0].strip())
                    if arguments:
                        check_arguments(arguments)


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_a_page_has_code_blocks_in_known_languages_only(path):
    known = {"python", "py", "sh", "text", "json", "toml", "bibtex", "conll", ""}
    assert {block.language for block in blocks(path)} <= known
    for block in blocks(path):
        if block.language == "py":  # code of other libraries, which is not run
            compile(block.code, f"{block.page}, line {block.line}", "exec")


def test_the_command_line_reference_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_examples_in_docstrings_become_code_blocks_in_the_reference():
    pytest.importorskip("griffe")
    from doctest_blocks import fenced

    assert fenced("Add.\n\n>>> 1 + 1\n2\n\nMore.") == "Add.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
