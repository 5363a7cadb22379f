"""Errors that users can fix. Each message names the problem and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class SpanshotError(Exception):
    """Base of all errors that users can fix. The command line prints it as one line and exits with code 2."""


class DataError(SpanshotError):
    """A file or a sentence cannot be read."""

    @classmethod
    def at(cls, path: str | Path, line: int | None, problem: str) -> DataError:
        """Build an error that names the place: ``train.txt:12: found 3 columns; expected 2``."""
        where = f"{path}:{line}" if line is not None else str(path)
        return cls(f"{where}: {problem}")


class InputError(SpanshotError, TypeError):
    """An argument is of the wrong type."""


class ConfigError(SpanshotError):
    """A setting is unknown or has an impossible value. The message lists all problems."""


class CheckpointError(SpanshotError):
    """A checkpoint folder is missing, damaged, or of another format."""


class EpisodeError(SpanshotError):
    """An episode cannot be built or learned from; for instance, a label has no example."""


class SpanshotWarning(UserWarning):
    """Something was dropped or done differently than expected."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return a hint at the most similar choice, to append to a message; empty if there is none.

    >>> did_you_mean("proot", ["esd", "proto"])
    "; did you mean 'proto'?"
    """
    near = difflib.get_close_matches(name, list(choices), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
