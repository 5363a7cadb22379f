"""Arguments that the research commands share: configs by path or name, and KEY=VALUE settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

import spanshot
from spanshot.errors import ConfigError, did_you_mean

Split = Annotated[str, typer.Option(metavar="SPLIT", help="Split of the corpus: train, dev or test.")]
FirstEpisodes = Annotated[
    int, typer.Option("--episodes", metavar="N", min=0, help="Use only the first N episodes (0: all).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]


def config_folder() -> Path:
    """Return the folder of the packaged configs; in a source checkout, the one at its root."""
    package = Path(spanshot.__file__).parent
    packaged = package / "configs"
    return packaged if packaged.is_dir() else package.parent.parent / "configs"


def packaged_configs() -> dict[str, Path]:
    """Return the packaged configs by name, such as ``snips/esd``."""
    folder = config_folder()
    paths = sorted(folder.rglob("*.toml"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def find_config(name: str | Path) -> Path:
    """Return the config at a path, or the packaged config of that name."""
    path = Path(name)
    if path.exists():
        return path
    packaged = packaged_configs()
    config = packaged.get(path.as_posix().removesuffix(".toml"))
    if config is None:
        hint = did_you_mean(path.as_posix(), packaged) or "; `spanshot train --list` lists the packaged ones"
        raise ConfigError(f"{name}: no such config file{hint}")
    return config


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
