"""Build typer apps."""

from __future__ import annotations

import typer


def new_app() -> typer.Typer:
    """Return an app for one command, with plain help."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, context_settings={"max_content_width": 100})
