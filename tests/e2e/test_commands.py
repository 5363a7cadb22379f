"""The list of commands, their help, and what is imported for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import spanshot as library
from spanshot.cli.main import COMMANDS, load_command
from spanshot.research.cli.arguments import find_config, packaged_configs

HEAVY = {"torch", "transformers", "accelerate"}


def modules_after(code: str) -> set[str]:
    program = (
        f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_the_list_of_commands_imports_no_command_and_nothing_heavy():
    loaded = modules_after("from spanshot.cli.main import main; main(['--help'])")
    assert not loaded & HEAVY
    assert not [name for name in loaded if name.startswith("spanshot.research")]
    assert not loaded & {entry.module for entry in COMMANDS.values()}


def test_commands_for_text_import_nothing_heavy_and_no_research_module():
    modules = [entry.module for entry in COMMANDS.values() if "research" not in entry.module]
    assert len(modules) == 10
    loaded = modules_after("; ".join(f"import {module}" for module in modules))
    assert not loaded & HEAVY
    assert not [name for name in loaded if name.startswith("spanshot.research")]


def test_the_help_of_every_command_imports_nothing_heavy():
    calls = "; ".join(f"load_command({name!r})" for name in COMMANDS)
    assert not modules_after(f"from spanshot.cli.main import load_command; {calls}") & HEAVY


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_begins_with_its_line_in_the_list(name):
    command = load_command(name)
    first = str(command.help).split("\n\n")[0].replace("\n", " ")
    assert first.startswith(COMMANDS[name].help.split(";")[0].rstrip(".")), first
    assert all(getattr(parameter, "help", "") for parameter in command.params), "every option needs a help text"


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_terminal(spanshot, monkeypatch, name, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    result = spanshot(name, "--help")
    assert result.code == 0
    assert max(map(len, result.out.splitlines())) <= columns


def test_version(spanshot):
    assert spanshot("--version").out == f"spanshot {library.__version__}\n"


def test_without_arguments_the_commands_are_listed(spanshot):
    result = spanshot()
    assert result.code == 0
    assert all(name in result.out for name in COMMANDS)


def test_info_tells_versions_model_threads_and_paths(spanshot):
    document = json.loads(spanshot("info", "--json").out)
    assert document["versions"]["spanshot"] == library.__version__
    assert document["model"]["megabytes"] > 1
    assert document["threads"]["cpus"] == os.cpu_count()
    assert document["paths"]["python"] == sys.executable
    shown = spanshot("info").out
    assert f"spanshot: {library.__version__}" in shown


def test_info_imports_nothing_heavy():
    assert not modules_after("from spanshot.cli.main import main; main(['info'])") & HEAVY


def test_verbose_logs_to_standard_error(spanshot, examples):
    result = spanshot("-v", "check", examples, "--no-model")
    assert f"INFO spanshot.cli.options: {examples}: 3 examples (inline)" in result.err
    assert "INFO" not in result.out


def test_packaged_configs_are_found_by_name(spanshot, tmp_path, monkeypatch):
    names = packaged_configs()
    assert "snips/esd" in names
    assert spanshot("train", "--list").out.split() == list(names)
    assert find_config("snips/esd") == find_config("snips/esd.toml") == names["snips/esd"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snips").mkdir()
    (tmp_path / "snips" / "esd").write_text("", encoding="utf-8")
    assert find_config("snips/esd").resolve() == tmp_path / "snips" / "esd"  # a file of one's own comes first
    result = spanshot("train", "snips/ezd")
    assert result.code == 2
    assert "did you mean 'snips/esd'?" in result.err
