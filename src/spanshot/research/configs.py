"""The configs that come with the package, by name."""

from __future__ import annotations

from pathlib import Path

import spanshot
from spanshot.errors import ConfigError, did_you_mean


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
