"""Fill the command line reference with the help of each command when the documentation is built."""

from __future__ import annotations

import inspect
import re

from spanshot.cli.main import COMMANDS, load_command

MARKER = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: object) -> str:
    """Replace the marker of the command line page by the reference of all commands."""
    return markdown.replace(MARKER, reference()) if MARKER in markdown else markdown


def reference() -> str:
    """Return the help of all commands as Markdown."""
    return "\n".join(section(name) for name in COMMANDS)


def section(name: str) -> str:
    """Return the help of one command as Markdown: what it does, its arguments and its options."""
    command = load_command(name)
    described = inspect.cleandoc(command.help or "")
    rows = []
    for parameter in command.params:
        names = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or (parameter.name or '').upper()}`"
        rows.append(f"| {names} | {_cell(getattr(parameter, 'help', None) or '')} |")
    table = "\n".join(["| argument or option | meaning |", "| --- | --- |", *rows]) if rows else ""
    return f"## spanshot {name}\n\n{described}\n\n{table}\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
