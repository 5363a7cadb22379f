"""``spanshot train``: train a method on a corpus."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanshot.cli.console import console, duration, note, percent
from spanshot.cli.new_app import new_app
from spanshot.errors import ConfigError
from spanshot.formats.files import read_text
from spanshot.json_text import Fields, parse_json
from spanshot.research.cli.arguments import Quiet, expand_home, find_config, packaged_configs

if TYPE_CHECKING:
    from rich.console import Console

    from spanshot.research.training.events import Event, Finished

INTERRUPTED = 130

app = new_app()


@app.command()
def train(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIG",
            help="Config: a TOML file, or the name of a packaged config such as snips/esd (see --list).",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings to change: train.steps=100.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the run. Default: runs/CONFIG-seedSEED.")
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard logs, too.")] = False,
    quiet: Quiet = False,
    list_configs: Annotated[bool, typer.Option("--list", help="List the packaged configs and exit.")] = False,
) -> None:
    """Train a method on a corpus.

    Safe to re-run: an interrupted run continues from its last saved state.
    """
    if list_configs:
        print("\n".join(packaged_configs()))
        return
    if config is None:
        raise typer.BadParameter("give a config file or name; --list lists the packaged ones")
    from spanshot.research.cli.training_display import TrainingDisplay
    from spanshot.research.training.devices import processes

    folder, events = start(find_config(config), settings or [], run, tensorboard)
    opening = f"Continuing the run in {folder}" if is_unfinished(folder) else f"Training in {folder}"
    display = TrainingDisplay(console(), opening, quiet=quiet or not processes().is_main_process)
    try:
        finished = display.follow(events)
    except KeyboardInterrupt:
        note(f"interrupted; run the same command again to continue {folder}")
        raise typer.Exit(INTERRUPTED) from None
    if finished and processes().is_main_process:
        _show_result(console(), folder, finished)


def start(config: Path, settings: Sequence[str], run: Path | None, tensorboard: bool) -> tuple[Path, Iterator[Event]]:
    """Return the folder of the run and its events. Training begins with the first event; all input is read before."""
    from spanshot.allocator import keep_memory
    from spanshot.research.training.devices import processes
    from spanshot.research.training.events import Finished, TensorBoard
    from spanshot.research.training.run import run_training
    from spanshot.research.training.settings import RunSettings

    keep_memory()
    if tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise ConfigError("TensorBoard is not installed; run `pip install tensorboard`")
    values = RunSettings.read(config, expand_home(settings))
    folder = run or default_run(config, values.seed)
    events = run_training(values, folder)

    def recorded() -> Iterator[Event]:
        board = TensorBoard(folder) if tensorboard and processes().is_main_process else None
        try:
            for event in events:
                if board and not isinstance(event, Finished):
                    board.record(event)
                yield event
        finally:
            if board:
                board.close()

    return folder, recorded()


def default_run(config: Path, seed: int) -> Path:
    """Return the default folder of a run: ``runs/snips-esd-seed1`` for ``configs/snips/esd.toml``."""
    from spanshot.research.training.settings import config_name

    return Path("runs") / f"{config_name(config)}-seed{seed}"


def is_unfinished(run: Path) -> bool:
    """Return whether the folder contains a run that was interrupted."""
    from spanshot.research.training.state import NAME

    return (run / NAME).is_file()


def unbiased_f1(run: Path, step: int) -> float | None:
    """Return the dev F1 without the O bias after ``step``, as recorded by the run."""
    from spanshot.research.training.events import METRICS

    f1 = None
    for line in read_text(run / METRICS).splitlines():
        record = Fields.of(parse_json(line))
        if record.integer("step") == step and "dev_f1_unbiased" in record.record:
            f1 = record.number("dev_f1_unbiased")
    return f1


def _show_result(out: Console, run: Path, finished: Finished) -> None:
    if not finished.best_step:
        out.print("The run ended without an evaluation on the dev split, so there is no checkpoint.")
        return
    unbiased = unbiased_f1(run, finished.best_step)
    without = f"; {percent(unbiased)} without it" if unbiased is not None else ""
    early = ", stopped early" if finished.stopped_early else ""
    out.print(
        f"Best dev F1 {percent(finished.best_f1)} at step {finished.best_step} "
        f"with O bias {finished.o_bias:g}{without}.",
        soft_wrap=True,
    )
    out.print(
        f"Trained for {duration(finished.seconds)}{early}. Next: spanshot evaluate {shlex.quote(str(run))}",
        soft_wrap=True,
    )
