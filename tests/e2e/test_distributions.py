"""The wheel and the sdist hold what their users need."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import spanshot

pytest.importorskip("hatchling", reason="the build backend is not installed")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built) -> set[str]:
    (path,) = built.glob("*.whl")
    return set(zipfile.ZipFile(path).namelist())


@pytest.fixture(scope="module")
def sdist(built) -> set[str]:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def files_below(folder: str) -> set[str]:
    """The files of a folder of the repository, without caches."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in paths}


def test_the_version_in_the_file_names_is_the_version_of_the_package(built):
    names = {path.name for path in built.iterdir()}
    version = spanshot.__version__
    assert names == {f"spanshot-{version}-py3-none-any.whl", f"spanshot-{version}.tar.gz"}


def test_the_wheel_holds_the_code_the_model_and_the_configs(wheel):
    for path in files_below("src/spanshot"):
        assert path.removeprefix("src/") in wheel
    for path in files_below("configs"):
        assert f"spanshot/{path}" in wheel


def test_the_wheel_installs_nothing_but_the_package(wheel):
    folders = {name.split("/")[0] for name in wheel}
    assert folders == {"spanshot", f"spanshot-{spanshot.__version__}.dist-info"}


@pytest.mark.parametrize("folder", ["src", "configs", "docs", "examples", "tests", "tools", "benchmarks"])
def test_the_sdist_holds_what_its_tests_need(sdist, folder):
    assert files_below(folder) <= sdist


def test_the_sdist_holds_the_files_that_building_and_testing_start_from(sdist):
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt", "mkdocs.yml"} <= sdist
    assert {".pre-commit-config.yaml", "CITATION.cff", "CHANGELOG.md", "CONTRIBUTING.md"} <= sdist
