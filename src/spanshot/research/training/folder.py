"""The files of a run's folder.

config.toml           the settings of the run
metrics.jsonl         one line per step and per evaluation on the dev split
best/                 the checkpoint with the best dev F1, or the last one if so set
resume.safetensors    the state of an unfinished run
result.json           the outcome of a finished run
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from spanshot.errors import CheckpointError, ConfigError, DataError
from spanshot.files import write_text
from spanshot.formats.files import read_text
from spanshot.json_text import Fields, parse_json, to_json
from spanshot.research.training.events import Finished
from spanshot.research.training.settings import RunSettings
from spanshot.settings import read_table, to_toml

RESULT, CONFIG, BEST = "result.json", "config.toml", "best"


def is_finished(folder: Path) -> bool:
    """Whether the folder contains a finished run."""
    return (folder / RESULT).is_file()


def check_unfinished(settings: RunSettings, folder: Path) -> None:
    """Refuse a folder with a finished run, or with a run of other settings."""
    if is_finished(folder):
        raise ConfigError(f"{folder} contains a finished run; choose another folder, or remove it to train again")
    check_settings(settings, folder)


def check_settings(settings: RunSettings, folder: Path) -> None:
    """Refuse a folder with a run of other settings, finished or not."""
    if (folder / CONFIG).is_file() and not is_same_training(read_table(folder / CONFIG), settings):
        raise ConfigError(
            f"{folder} contains a run with other settings; choose another folder, or use the same settings to resume it"
        )


def is_same_training(recorded: Mapping[str, object], settings: RunSettings) -> bool:
    """Return whether recorded settings give the same weights. Missing ones have their defaults; workers may differ."""
    try:
        stored = RunSettings.of(recorded)
    except ConfigError:  # it has settings that this version lacks
        return False
    same_workers = replace(stored, train=replace(stored.train, workers=settings.train.workers))
    return same_workers.to_table() == settings.to_table()


def write_settings(settings: RunSettings, folder: Path) -> None:
    """Create the folder and record the settings in it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, [to_toml(settings.to_table())])


def write_result(result: Finished, folder: Path) -> None:
    """Mark the run as finished."""
    write_text(folder / RESULT, [to_json(asdict(result), indent=2), "\n"])


def read_result(folder: Path) -> Finished | None:
    """Return the outcome of the run; None if it is not finished or the folder contains no run."""
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        fields = Fields.of(parse_json(read_text(path)))
        return Finished(
            best_step=fields.integer("best_step"),
            best_f1=fields.number("best_f1"),
            o_bias=fields.number("o_bias"),
            stopped_early=fields.value("stopped_early") is True,
            seconds=fields.number("seconds"),
        )
    except DataError as problem:
        raise CheckpointError(f"{path}: damaged: {problem}; remove {folder} to train it again") from None
