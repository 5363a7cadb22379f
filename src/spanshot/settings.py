"""Settings: frozen dataclasses, read from TOML and ``key=value`` overrides, all problems told at once."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import tomli_w

from spanshot.errors import ConfigError, did_you_mean

Settings = TypeVar("Settings")
Table = dict[str, Any]


def read_table(path: str | Path) -> Table:
    """The TOML file at ``path``."""
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such config file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: not valid TOML: {problem}") from None


def override(table: Table, assignments: Iterable[str]) -> Table:
    """The table with ``train.steps=100`` and the like set. Values are TOML; bare words are strings.

    >>> override({"train": {"steps": 5}}, ["train.steps=7", "encoder.name=minilm"])
    {'train': {'steps': 7}, 'encoder': {'name': 'minilm'}}
    """
    table = {key: dict(value) if isinstance(value, dict) else value for key, value in table.items()}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key:
            raise ConfigError(f"an override must look like train.steps=100; found {assignment!r}")
        *sections, name = key.split(".")
        inner = table
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"{assignment!r}: {section!r} is a value, not a section")
        inner[name] = _value(value)
    return table


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def build(kind: type[Settings], table: Mapping[str, Any]) -> Settings:
    """Settings of the given kind from a table; one error names every problem."""
    problems: list[str] = []
    settings = build_section(kind, table, "", problems)
    raise_if_any(problems)
    assert settings is not None
    return settings


def build_section(kind: type[Settings], table: object, where: str, problems: list[str]) -> Settings | None:
    """As :func:`build`, for the section ``where``; problems are added to the list. None if there are any."""
    if not isinstance(table, Mapping):
        problems.append(f"[{where}] must be a section; found {table!r}")
        return None
    before = len(problems)
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values: Table = {}
    for name, value in table.items():
        full = f"{where}.{name}" if where else name
        if name not in fields:
            problems.append(f"unknown setting {full!r}{did_you_mean(name, fields)}")
        elif dataclasses.is_dataclass(hints[name]):
            values[name] = build_section(hints[name], value, full, problems)
        else:
            values[name] = _typed(value, hints[name], full, problems)
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in table:
            problems.append(f"setting {f'{where}.{name}' if where else name!r} is missing: {field_help(kind)[name]}")
    if len(problems) > before:
        return None
    try:
        return kind(**values)
    except ConfigError as problem:
        problems.append(f"[{where}] {problem}" if where else str(problem))
        return None


def raise_if_any(problems: list[str]) -> None:
    """One error for all problems, if there are any."""
    if problems:
        raise ConfigError("; ".join(problems))


def choose(section: Mapping[str, Any], key: str, known: Mapping[str, Settings], where: str) -> Settings:
    """What ``section[key]`` names among ``known``, such as the method of ``[method] name = "esd"``."""
    name = section.get(key)
    if not isinstance(name, str) or name not in known:
        found = f"found {name!r}{did_you_mean(str(name), known)}" if name is not None else "it is missing"
        raise ConfigError(f"{where}.{key} must be one of {', '.join(known)}; {found}")
    return known[name]


def _typed(value: Any, kind: Any, full: str, problems: list[str]) -> Any:
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_typed(item, get_args(kind)[0], full, problems) for item in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        expected = "a list" if get_origin(kind) is tuple else f"of type {getattr(kind, '__name__', kind)}"
        problems.append(f"setting {full!r} must be {expected}; found {value!r}")
    return value


def to_table(settings: Any) -> Table:
    """The settings as a TOML table."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in dataclasses.asdict(settings).items()
    }


def to_toml(table: Table) -> str:
    """A table as TOML text."""
    return tomli_w.dumps(table)


def field_help(kind: type) -> dict[str, str]:
    """The docstring under each field of a settings class, or under that of the class it inherits from."""
    found: dict[str, str] = {}
    for owner in reversed([cls for cls in kind.__mro__ if dataclasses.is_dataclass(cls)]):
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
        body = tree.body[0].body  # type: ignore[attr-defined]
        for pair in pairwise(body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return {field.name: found.get(field.name, "") for field in dataclasses.fields(kind)}
