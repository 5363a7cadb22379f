"""The metadata of the package: dependencies, version, pinned versions, citation."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import spanshot

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "spanshot"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEPENDENCIES = dict(line.split(">=") for line in PROJECT["project"]["dependencies"])
TRAIN = dict(line.split(">=") for line in PROJECT["project"]["optional-dependencies"]["train"])
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
# Packages imported only if they are installed, and stubs that exist for type checkers only.
OPTIONAL = {
    "tensorboard",
    "_typeshed",
    "pyarrow",
    "pandas",
    "polars",
    "datasets",
    "spacy",
    "srsly",
    "sklearn",
    "IPython",
    "fastapi",
    "anyio",
    "starlette",
    "pydantic",
    "uvicorn",
    "prometheus_client",
    "httpx",
    "matplotlib",
    "optuna",
    "fsspec",
    "ray",
}


def imported_packages(*, research: bool) -> set[str]:
    """Return the top-level names that a storey imports, other than the package's own and the standard library's."""
    names = set()
    for path in SRC.rglob("*.py"):
        if path.is_relative_to(SRC / "research") is not research:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"spanshot"}


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.py")), ids=lambda path: path.relative_to(SRC).as_posix())
def test_docstrings_are_markdown_without_rst_roles(path):
    assert not re.search(r":(meth|class|func|mod|data|attr):`", path.read_text(encoding="utf-8"))


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def test_every_imported_package_is_declared_and_every_declared_package_is_imported():
    assert imported_packages(research=False) - OPTIONAL == {name.replace("-", "_") for name in DEPENDENCIES}


def test_the_extra_for_training_adds_the_packages_that_only_the_upper_floor_imports():
    needed = imported_packages(research=True) - OPTIONAL - {name.replace("-", "_") for name in DEPENDENCIES}
    assert needed | {"onnxscript"} == {name.replace("-", "_") for name in TRAIN}  # torch's exporter imports onnxscript


def test_the_base_install_needs_no_deep_learning_framework():
    assert not {"torch", "transformers", "accelerate", "onnx"} & DEPENDENCIES.keys()


@pytest.mark.parametrize("name", [*DEPENDENCIES, *TRAIN])
def test_the_pinned_version_of_a_dependency_is_in_the_declared_range(name):
    assert numbers(PINS[name]) >= numbers((DEPENDENCIES | TRAIN)[name])


def test_versions_with_known_holes_are_not_allowed():
    assert numbers(TRAIN["transformers"]) >= (5, 10)
    assert numbers(TRAIN["torch"]) >= (2, 6)


def test_developer_tools_are_dependency_groups_and_not_published_extras():
    assert set(PROJECT["project"]["optional-dependencies"]) == {
        "train",
        "tensorboard",
        "tables",
        "ray",
        "spacy",
        "sklearn",
        "hub",
        "serve",
        "ui",
        "client",
        "reproduce",
    }
    assert set(PROJECT["dependency-groups"]) == {"base-test", "test", "docs", "dev"}


def test_the_version_has_one_source():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/spanshot/__init__.py"
    assert f"## {spanshot.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_lock_pins_versions_and_names_no_host():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert not [mark for mark in ("://", " @ ", "--") if mark in text]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", f"{name}=={version}") for name, version in PINS.items())


def test_the_citation_is_valid_and_names_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["references"][0]["title"].startswith("An Enhanced Span-based Decomposition")


def test_hooks_are_local():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in hooks["repos"]] == ["local"]


def test_a_makefile_target_exists_for_every_make_command_in_the_documentation():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    used = {name for page in pages for name in re.findall(r"`make ([a-z]+)", page.read_text(encoding="utf-8"))}
    assert used <= targets, used - targets
