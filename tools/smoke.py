"""Install the wheel in a fresh environment and use it as the README does.

    python tools/smoke.py [--newest]

Builds the wheel, creates a virtual environment outside the checkout and installs the lowest versions that
pyproject.toml allows, or the newest with `--newest`: the base install, without torch. Then runs the README's code,
compares the output, and calls the commands.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

from markdown_blocks import blocks, with_output

ROOT = Path(__file__).parents[1]
REQUIREMENT = re.compile(r"^([A-Za-z0-9-]+)>=([0-9.]+)$")


def lowest() -> list[str]:
    """Return a pin to the lowest allowed version for each dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matches = [REQUIREMENT.match(line) for line in project["dependencies"]]
    if not all(matches):
        raise SystemExit(f"pyproject.toml: write each dependency as name>=version: {project['dependencies']}")
    return [f"{match[1]}=={match[2]}" for match in matches if match]


def run(*command: str | Path, folder: Path, expect: int = 0) -> str:
    """Run a command in a folder, check its exit code and return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"PYTHONUTF8": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True
    )
    if process.returncode != expect:
        command_line = " ".join(str(part) for part in command)
        raise SystemExit(
            f"exit code {process.returncode}, expected {expect}: {command_line}\n{process.stdout}{process.stderr}"
        )
    return process.stdout + (process.stderr if expect else "")


def build(folder: Path) -> Path:
    """Build the wheel into a folder and return its path."""
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, folder=ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, environment: Path, pins: Sequence[str]) -> Path:
    """Create an environment with the wheel in it and return the folder of its programs."""
    venv.create(environment, with_pip=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    constraints = environment / "pins.txt"
    constraints.write_text("\n".join(pins), encoding="utf-8")
    pip = (programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", "--constraint", constraints, wheel, folder=environment)
    run(*pip, "check", folder=environment)
    return programs


def use(programs: Path, folder: Path) -> None:
    """Run the README's Python code and the commands in an empty folder."""
    for block, expected in with_output(blocks(ROOT / "README.md")):
        (folder / "snippet.py").write_text(block.code, encoding="utf-8")
        output = run(programs / "python", "snippet.py", folder=folder)
        if expected is not None and output != expected:
            raise SystemExit(f"README.md, line {block.line}: printed\n{output}expected\n{expected}")
    spanshot = programs / "spanshot"
    (folder / "examples.txt").write_text("[Rosa](person) lives in [Oslo](city).\n", encoding="utf-8")
    print(run(spanshot, "--version", folder=folder).strip())
    print(run(spanshot, "info", folder=folder).strip())
    run(spanshot, "learn", "-e", "examples.txt", "-o", "saved", folder=folder)
    tagged = run(spanshot, "tag", "-m", "saved", "Ada moved to Paris.", folder=folder)
    if "city" not in tagged:
        raise SystemExit(f"spanshot tag found no city: {tagged}")
    message = run(spanshot, "train", "snips/esd-minilm", "data.folder=no-such-folder", folder=folder, expect=2)
    if "pip install 'spanshot[train]'" not in message:
        raise SystemExit(f"spanshot train does not say what to install: {message}")


def main() -> None:
    """Build, install and use."""
    parser = argparse.ArgumentParser(description="Test the wheel in a fresh environment.")
    parser.add_argument("--newest", action="store_true", help="install the newest versions, not the lowest")
    newest = parser.parse_args().newest
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = build(folder / "dist")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        programs = install(wheel, folder / "environment", () if newest else lowest())
        installed = run(programs / "python", "-m", "pip", "freeze", folder=folder).strip()
        print(installed)
        if "torch==" in installed or "transformers==" in installed:
            raise SystemExit("the base install brings in torch or transformers")
        packages = sum(path.stat().st_size for path in (folder / "environment").rglob("*") if path.is_file())
        print(f"environment: {packages / 1e6:.0f} MB", flush=True)
        (folder / "empty").mkdir()
        use(programs, folder / "empty")
    print("The wheel works.")


if __name__ == "__main__":
    main()
