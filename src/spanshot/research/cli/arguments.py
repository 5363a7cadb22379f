"""Arguments that the research commands share: configs by path or name, and KEY=VALUE settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from spanshot.research.configs import config_folder, find_config, packaged_configs

__all__ = [
    "FirstEpisodes",
    "Quiet",
    "Split",
    "config_folder",
    "expand_home",
    "find_config",
    "packaged_configs",
    "split_arguments",
]

Split = Annotated[str, typer.Option(metavar="SPLIT", help="Split of the corpus: train, dev or test.")]
FirstEpisodes = Annotated[
    int, typer.Option("--episodes", metavar="N", min=0, help="Use only the first N episodes (0: all).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]


def split_arguments(arguments: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate names of files from KEY=VALUE settings. An existing file may have an equals sign in its name."""
    names: list[str] = []
    settings: list[str] = []
    for argument in arguments:
        (settings if "=" in argument and not Path(argument).exists() else names).append(argument)
    return names, settings


def expand_home(settings: Sequence[str]) -> list[str]:
    """Expand ``~/`` in the values of KEY=VALUE settings; a shell does so only at the start of a word."""
    expanded = []
    for setting in settings:
        key, equals, value = setting.partition("=")
        expanded.append(f"{key}{equals}{Path(value).expanduser()}" if value.startswith("~/") else setting)
    return expanded
