"""``spanshot methods``: list the methods that can be trained."""

from __future__ import annotations

import sys

from rich.text import Text

from spanshot.cli.console import console
from spanshot.cli.new_app import new_app

app = new_app()


@app.command()
def methods() -> None:
    """List the methods that can be trained."""
    ideas = method_ideas()
    width = max(map(len, ideas))
    out = console()
    for name, idea in ideas.items():
        out.print(Text.assemble((f"{name:{width}}", "bold"), "  ", idea), soft_wrap=True)


def method_ideas() -> dict[str, str]:
    """Return the first line of each method's file by the method's name."""
    from spanshot.research.methods import METHODS

    return {
        name: str(sys.modules[method.__module__].__doc__).strip().splitlines()[0] for name, method in METHODS.items()
    }
