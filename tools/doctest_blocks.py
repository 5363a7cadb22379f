"""Show the examples in docstrings as code blocks in the documentation; Markdown takes ``>>>`` for quotations."""

from __future__ import annotations

import griffe


class DoctestBlocks(griffe.Extension):
    """Fences doctests before mkdocstrings renders a docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Change the docstring of an object."""
        del kwargs
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    r"""Put paragraphs that begin with a prompt into code blocks.

    >>> fenced("Add.\n\n>>> 1 + 1\n2")
    'Add.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```pycon\n{part}\n```" if part.lstrip().startswith(">>>") else part for part in paragraphs)
