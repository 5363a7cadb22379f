"""Read settings from TOML and ``key=value`` overrides into frozen dataclasses; one error lists all problems."""

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
Choice = TypeVar("Choice")
Table = dict[str, Any]
"""A TOML table; its values are checked against the types of a settings class."""


def read_table(path: str | Path) -> Table:
    """Read a TOML file."""
    try:
        return parse_toml(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such config file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; give a TOML file") from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{path}: not valid TOML: {problem}") from None
    except ConfigError as problem:
        raise ConfigError(f"{path}: {problem}") from None


def parse_toml(text: str) -> Table:
    """Parse TOML text."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError("not valid TOML: nested too deeply") from None
    except ValueError as problem:  # also for a number with thousands of digits
        raise ConfigError(f"not valid TOML: {str(problem).partition(';')[0]}") from None


def override(table: Table, assignments: Iterable[str]) -> Table:
    """Return the table with settings such as ``train.steps=100`` changed. Values are TOML; bare words are strings.

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
        inner[name] = _parse_value(value)
    return table


def _parse_value(text: str) -> object:
    try:
        value: object = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError):
        raise ConfigError(f"an override has a value that is too long or nested too deeply: {text[:40]}…") from None
    return value


def build(kind: type[Settings], table: Mapping[str, object]) -> Settings:
    """Build settings of the given class from a table; one error lists every problem."""
    problems: list[str] = []
    settings = build_section(kind, table, "", problems)
    raise_if_any(problems)
    assert settings is not None
    return settings


def build_section(kind: type[Settings], table: object, section: str, problems: list[str]) -> Settings | None:
    """Build settings from the table of a section. Problems are added to the list; return None if there are any."""
    if not isinstance(table, Mapping):
        problems.append(f"[{section}] must be a section; found {table!r}")
        return None
    before = len(problems)
    hints = get_type_hints(kind)
    fields = {field.name: field for field in _fields(kind)}
    values: dict[str, object] = {}
    for name, value in table.items():
        full_name = f"{section}.{name}" if section else name
        if name not in fields:
            problems.append(f"unknown setting {full_name!r}{did_you_mean(name, fields)}")
        elif dataclasses.is_dataclass(hints[name]):
            values[name] = build_section(hints[name], value, full_name, problems)
        else:
            values[name] = _checked(value, hints[name], full_name, problems)
    for name, field in fields.items():
        is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if is_required and name not in table:
            full_name = f"{section}.{name}" if section else name
            problems.append(f"setting {full_name!r} is missing: {field_help(kind)[name]}")
    if len(problems) > before:
        return None
    try:
        return kind(**values)
    except ConfigError as problem:
        problems.append(f"[{section}] {problem}" if section else str(problem))
        return None


def raise_if_any(problems: list[str]) -> None:
    """Raise one error for all problems, if there are any."""
    if problems:
        raise ConfigError("; ".join(problems))


def choose(table: Mapping[str, object], key: str, choices: Mapping[str, Choice], section: str) -> Choice:
    """Return the choice that a setting names, such as the method of ``[method] name = "esd"``."""
    name = table.get(key)
    if not isinstance(name, str) or name not in choices:
        docstrings = f"found {name!r}{did_you_mean(str(name), choices)}" if name is not None else "it is missing"
        raise ConfigError(f"{section}.{key} must be one of {', '.join(choices)}; {docstrings}")
    return choices[name]


def _checked(value: object, kind: type, name: str, problems: list[str]) -> object:
    """Return a value of the given type; lists become tuples, whole numbers floats where needed."""
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_checked(item, get_args(kind)[0], name, problems) for item in value)
    if kind is float and type(value) is int and abs(value) < 2**1000:
        return float(value)
    if type(value) is not kind:
        expected = "a list" if get_origin(kind) is tuple else f"of type {getattr(kind, '__name__', kind)}"
        problems.append(f"setting {name!r} must be {expected}; found {_quoted(value)}")
    return value


def _quoted(value: object) -> str:
    """Return a value for a message, shortened."""
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}…"


def to_table(settings: object) -> Table:
    """Return settings as a TOML table."""
    if not dataclasses.is_dataclass(settings) or isinstance(settings, type):
        raise TypeError(f"settings must be a dataclass; found {settings!r}")
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in dataclasses.asdict(settings).items()
    }


def to_toml(table: Table) -> str:
    """Return a table as TOML."""
    return tomli_w.dumps(table)


def field_help(kind: type) -> dict[str, str]:
    """Return the docstring of each field of a settings class; inherited fields have that of their class."""
    docstrings: dict[str, str] = {}
    for owner in reversed([cls for cls in kind.__mro__ if dataclasses.is_dataclass(cls)]):
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
        body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef))
        for pair in pairwise(body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docstrings[name] = " ".join(text.split())
    return {field.name: docstrings.get(field.name, "") for field in dataclasses.fields(kind)}


def _fields(kind: type) -> tuple[dataclasses.Field[object], ...]:
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"settings must be a dataclass; found {kind.__name__}")
    return dataclasses.fields(kind)
