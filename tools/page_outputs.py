"""Run the code blocks of the documentation and write their output into the pages.

    python tools/page_outputs.py              all pages
    python tools/page_outputs.py README.md    some pages
    python tools/page_outputs.py --check …    write nothing; fail if a page would change

Run this after a change of the packaged model, and read the differences. The tests check the same outputs.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from markdown_blocks import Block, blocks
from spanshot.cli.main import run

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
RECORDS = {"lab-log.md"}
"""Pages whose commands are a record of an earlier version."""
QUICK = {"tag", "learn", "check", "convert", "suggest", "evaluate-examples", "methods", "settings", "info"}
"""Commands that are run. The others take long, or need a corpus or a trained run."""
NEEDS_DATA = re.compile(r"FOLDER|\bruns/")


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


def outputs(page: list[Block]) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page in order, in the current folder; yield each output block and the actual output.

    A `text` block after code is its output. Blocks with a title are files of the page.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    output = ""
    for block in page:
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.code, encoding="utf-8")
        elif block.language == "text" and output:
            yield block, output
        if block.language == "python":
            output = _run_python(block, namespace)
        elif block.language == "sh":
            output = _run_shell(block)
        else:
            output = ""


def _run_python(block: Block, namespace: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, f"{block.page}, line {block.line}", "exec"), namespace)
    return printed.getvalue()


def _run_shell(block: Block) -> str:
    """Run the commands of spanshot that are quick; return the output of the last one."""
    output = ""
    for command in commands(block.code):
        arguments = spanshot_arguments(command)
        if arguments and arguments[0] in QUICK and not NEEDS_DATA.search(command):
            output = run_command(arguments)
    return output


def run_command(arguments: list[str]) -> str:
    """Run a command in this process and return its output; `> FILE` redirects it."""
    target = None
    if ">" in arguments:
        at = arguments.index(">")
        target, arguments = Path(arguments[at + 1]), arguments[:at]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = run(arguments)
    assert not code, f"spanshot {shlex.join(arguments)} ended with code {code}"
    if target is not None:
        target.write_text(printed.getvalue(), encoding="utf-8")
        return ""
    return printed.getvalue()


def update(path: Path, *, check: bool = False) -> bool:
    """Write the actual outputs into a page, unless ``check``; return whether they differ from those in the page."""
    text = path.read_text(encoding="utf-8")
    actual = [(block, textwrap.indent(output.strip() + "\n", block.indent)) for block, output in outputs(blocks(path))]
    updated = text
    for block, output in reversed(actual):
        updated = updated[: block.span[0]] + output + updated[block.span[1] :]
    if updated != text and not check:
        path.write_text(updated, encoding="utf-8", newline="\n")
    return updated != text


def main() -> None:
    """Update or check the given pages, or all."""
    check, names = "--check" in sys.argv, [name for name in sys.argv[1:] if name != "--check"]
    any_changed = False
    with contextlib.suppress(ImportError):  # spaCy finds the component by itself only if spanshot is installed
        importlib.import_module("spanshot.integrations.spacy")
    start = Path.cwd()
    for path in [Path(name).resolve() for name in names] or [p for p in PAGES if p.name not in RECORDS]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "examples", Path(folder) / "examples")
            os.chdir(folder)
            try:
                changed = update(path, check=check)
            finally:
                os.chdir(start)
        any_changed |= changed
        outcome = "unchanged" if not changed else "different" if check else "updated"
        print(f"{path.relative_to(ROOT)}: {outcome}")
    if check and any_changed:
        sys.exit("the output of a page differs")


if __name__ == "__main__":
    main()
