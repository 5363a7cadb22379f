"""The few errors that a user can meet. Each message names what was found and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class SpanshotError(Exception):
    """Anything a user can put right; the command line prints it as one line and exits with code 2."""


class DataError(SpanshotError):
    """A file or a sentence that cannot be read as it stands."""

    @classmethod
    def at(cls, path: str | Path, line: int | None, problem: str) -> DataError:
        """An error that says where: ``train.txt:12: found 3 columns; expected 2``."""
        where = f"{path}:{line}" if line is not None else str(path)
        return cls(f"{where}: {problem}")


class ConfigError(SpanshotError):
    """A setting that is unknown or has an impossible value; holds all problems found at once."""


class CheckpointError(SpanshotError):
    """A model directory that is missing, incomplete, or of another format."""


class EpisodeError(SpanshotError):
    """An episode that cannot be built or learned from, such as a label without an example."""


class SpanshotWarning(UserWarning):
    """Something that was left out or thought of otherwise than a user might expect; the work went on."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest known name, for the end of a message, or nothing.

    >>> did_you_mean("proot", ["esd", "proto"])
    "; did you mean 'proto'?"
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
