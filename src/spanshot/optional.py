"""Import the optional packages that adapters need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from spanshot.errors import ConfigError


class MissingPackageError(ConfigError, ImportError):
    """An optional package is not installed."""


def need(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package; name the extra that installs it if it is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise missing(package, extra) from None


def missing(package: str | None, extra: str, what: str = "this") -> MissingPackageError:
    """Return the error for a package that is not installed; ``what`` needs it."""
    return MissingPackageError(f"{what} needs the package {package}; install it with `pip install 'spanshot[{extra}]'`")
