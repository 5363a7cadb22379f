"""The code in the README and the documentation runs and prints what the pages say."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from markdown_blocks import Block, blocks
from spanshot.cli.main import COMMANDS, load_command, main
from write_cli_reference import PAGE, reference

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
# Pages whose commands are a record of an earlier version.
RECORDS = {"lab-log.md"}
# Commands that run on the files of their page; of the others, only the arguments are checked: they take long, or need a
# corpus or a trained run.
NEEDS = re.compile(r"FOLDER|\bruns/")
QUICK = {"tag", "learn", "check", "evaluate-examples", "methods", "settings", "info"}


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def commands(code: str) -> list[str]:
    """Return the lines of a shell block, without comments and with continued lines joined."""
    joined = code.replace("\\\n", " ")
    lines = (" ".join(shlex.split(line, comments=True, posix=False)) for line in joined.splitlines())
    return [line for line in lines if line]


def spanshot_arguments(command: str) -> list[str] | None:
    """Return the arguments of a call of spanshot, or None for other commands and for pipes."""
    words = shlex.split(command)
    if words[:1] != ["spanshot"] or "|" in words:
        return None
    return words[1:]


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


def run_command(command: str) -> str:
    """Run a call of spanshot in this process and return its output; `> file` redirects it."""
    words = shlex.split(command)[1:]
    target = None
    if ">" in words:
        at = words.index(">")
        target, words = Path(words[at + 1]), words[:at]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code, f"{command} ended with code {ended.value.code}"
    if target is not None:
        target.write_text(output.getvalue(), encoding="utf-8")
        return ""
    return output.getvalue()


def run_page(page: list[Block], namespace: dict[str, object]) -> None:
    """Run the blocks of a page in order; a `text` block after code must be its output."""
    output = ""
    for block in page:
        where = f"{block.page}, line {block.line}"
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.code, encoding="utf-8")
        elif block.language == "text" and output:
            assert output.strip() == block.code.strip(), where
        elif block.language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.code, where, "exec"), namespace)
            output = printed.getvalue()
            continue
        elif block.language == "sh":
            output = ""
            for command in commands(block.code):
                arguments = spanshot_arguments(command)
                if arguments and arguments[0] in QUICK and not NEEDS.search(command):
                    output = run_command(command)
            continue
        output = ""


@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in RECORDS], ids=page_name)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(path, tmp_path, monkeypatch):
    page = blocks(path)
    if not any(block.language in {"python", "sh"} for block in page):
        pytest.skip("no code")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    run_page(page, {"__name__": "__main__"})


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
    assert {block.language for block in blocks(path)} <= {"python", "sh", "text", "json", "toml", "bibtex", "conll", ""}


def test_the_command_line_reference_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"
