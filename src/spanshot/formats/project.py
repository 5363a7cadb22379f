"""Projects of `spanshot ui`: the annotated texts of a project file are examples like any others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spanshot.formats.char_spans import MarkedText

SUFFIX = ".spanshot.jsonl"


def is_project(path: Path) -> bool:
    """Return whether a file is a project, by its name."""
    return path.name.lower().endswith(SUFFIX)


def read_project(path: Path) -> Iterator[MarkedText]:
    """Read the texts of a project that were reviewed, or in which something is marked or rejected."""
    from spanshot.ui.learning import marked_texts
    from spanshot.ui.project import read_history

    yield from marked_texts(read_history(path).state, path.name)
