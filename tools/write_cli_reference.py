"""Write docs/reference/command-line.md from the help of each command.

python tools/write_cli_reference.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from spanshot.cli.main import COMMANDS, load_command

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"
HEAD = """# Command line

<!-- Written by tools/write_cli_reference.py (`make docs`). Edit the help texts of the commands instead. -->

`spanshot COMMAND --help` prints the same on a terminal. `python -m spanshot` works, too.

Exit codes: 0 success, 1 finished with problems (such as skipped lines, or findings with `--strict`), 2 error,
130 interrupted. Errors are one line on standard error. `spanshot --version` prints the version, and
`spanshot -v COMMAND` logs more.
"""


def reference() -> str:
    """Return the page as Markdown."""
    return "\n".join([HEAD, *(section(name) for name in COMMANDS)])


def section(name: str) -> str:
    """Return the help of one command as Markdown: its purpose, its arguments and its options."""
    command = load_command(name)
    described = inspect.cleandoc(command.help or "")
    rows = [
        f"| {_names(parameter)} | {_cell(getattr(parameter, 'help', None) or '')} |" for parameter in command.params
    ]
    return "\n".join(
        [f"## spanshot {name}\n", f"{described}\n", "| argument or option | meaning |", "| --- | --- |", *rows, ""]
    )


def _names(parameter: object) -> str:
    if getattr(parameter, "param_type_name", "") == "argument":
        metavar = getattr(parameter, "metavar", None) or str(getattr(parameter, "name", "")).upper()
        return f"`{_cell(metavar)}`"
    options = [*getattr(parameter, "opts", []), *getattr(parameter, "secondary_opts", [])]
    return ", ".join(f"`{option}`" for option in options)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8", newline="\n")
    print(PAGE)
