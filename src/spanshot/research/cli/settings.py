"""``spanshot settings``: list the settings of config files."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, get_args, get_type_hints

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from spanshot.cli.console import console
from spanshot.cli.new_app import new_app
from spanshot.settings import choose, field_help

app = new_app()


@app.command()
def settings(
    method: Annotated[
        str | None, typer.Argument(metavar="METHOD", help="List the settings of this method only.")
    ] = None,
) -> None:
    """List the settings of config files, with types, defaults and meaning."""
    show_settings(console(), list_settings(method))


@dataclass(frozen=True)
class Setting:
    """A setting as users see it."""

    name: str
    kind: str
    default: str
    """As written in TOML; empty if the setting is required."""
    help: str


def list_settings(method: str | None) -> dict[str, list[Setting]]:
    """Return all settings by section of a config file, for one method or for all."""
    from spanshot.research.corpora.registry import SOURCES
    from spanshot.research.methods import METHODS
    from spanshot.research.model_settings import EncoderSettings
    from spanshot.research.training.settings import PretrainSettings, TrainSettings

    if method is not None:
        choose({"name": method}, "name", METHODS, "method")
    chosen = {method: METHODS[method]} if method is not None else METHODS
    kinds: dict[str, type] = {
        f'[method] name = "{name}"': chosen_method.Settings for name, chosen_method in chosen.items()
    }
    kinds |= {f'[data] kind = "{name}"': source for name, source in SOURCES.items()}
    kinds |= {"[encoder]": EncoderSettings, "[train]": TrainSettings, "[pretrain]": PretrainSettings}
    seed = Setting("seed", "int", "1", "Seed of all random choices; stands above the sections.")
    return {"": [seed], **{title: _settings_of(kind) for title, kind in kinds.items() if fields(kind)}}


def _settings_of(kind: type) -> list[Setting]:
    help_of, hints = field_help(kind), get_type_hints(kind)
    listed = []
    for field in fields(kind):
        hint = hints[field.name]
        named = f"list of {get_args(hint)[0].__name__}" if get_args(hint) else hint.__name__
        default = "" if field.default is MISSING else _as_toml(field.default)
        listed.append(Setting(field.name, named, default, help_of[field.name]))
    return listed


def _as_toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    return json.dumps(value) if isinstance(value, bool | str) else repr(value)


def show_settings(out: Console, sections: dict[str, list[Setting]]) -> None:
    """Print name, default, type and meaning of each setting, by section."""
    for title, settings_of_section in sections.items():
        if title:
            out.print(f"\n{title}", style="bold")
        for setting in settings_of_section:
            description = f"= {setting.default}  ({setting.kind})" if setting.default else f"({setting.kind}, required)"
            out.print(f"{setting.name} {description}")
            out.print(Padding(Text(setting.help, style="dim"), (0, 0, 0, 4), expand=False))
