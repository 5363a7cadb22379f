"""``spanshot compare``: train and evaluate several methods on the same episodes, and print one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanshot.cli.console import console, duration, note, percent, progress_bars
from spanshot.cli.new_app import new_app
from spanshot.cli.options import Json
from spanshot.errors import ConfigError
from spanshot.evaluation.runs import ComparisonReport
from spanshot.json_text import to_json
from spanshot.research.cli.arguments import FirstEpisodes, Quiet, Split, expand_home, find_config, split_arguments
from spanshot.research.cli.comparison_table import show_comparison, to_markdown
from spanshot.research.cli.train import INTERRUPTED, is_unfinished

if TYPE_CHECKING:
    from spanshot.research.experiments.compare import PlannedRun

app = new_app()


@app.command()
def compare(
    configs: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG|KEY=VALUE",
            help="TOML files or names of packaged configs, one per method, then settings to change in all of them.",
        ),
    ],
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the runs.")] = Path("runs/compare"),
    split: Split = "test",
    episodes: FirstEpisodes = 0,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="SEEDS",
            help="Train once with each of these seeds, such as 1,2,3. Default: the seed of each config.",
        ),
    ] = "",
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    quiet: Quiet = False,
) -> None:
    """Train and evaluate several methods on the same episodes; print one table.

    Safe to re-run: interrupted runs continue, finished ones are skipped. Writes comparison.json into the folder;
    progress goes to standard error.
    """
    if as_json and markdown:
        raise typer.BadParameter("--json and --markdown cannot be combined")
    names, settings = split_arguments(configs)
    if not names:
        raise typer.BadParameter("give at least one config")
    try:
        report = compare_configs(
            list(map(find_config, names)), settings, folder, parse_seeds(seeds), split, episodes, quiet=quiet
        )
    except KeyboardInterrupt:
        note("interrupted; run the same command again to continue the comparison")
        raise typer.Exit(INTERRUPTED) from None
    if report is None:
        return
    if as_json:
        print(to_json(report.to_dict(), indent=2))
    elif markdown:
        print(to_markdown(report))
    else:
        show_comparison(console(), report)


def parse_seeds(text: str) -> list[int]:
    """Parse ``1,2,3``; an empty text is no seed."""
    try:
        seeds = [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise ConfigError(f"--seeds must look like 1,2,3; found {text!r}") from None
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seeds must name each seed once; found {text!r}")
    return seeds


def compare_configs(
    configs: Sequence[Path],
    settings: Sequence[str],
    folder: Path,
    seeds: Sequence[int],
    split: str,
    first: int,
    *,
    quiet: bool = False,
) -> ComparisonReport | None:
    """Train and evaluate unfinished runs and return all figures; None except in the main process."""
    from spanshot.allocator import keep_memory
    from spanshot.research.cli.training_display import TrainingDisplay
    from spanshot.research.corpora.source import known_split
    from spanshot.research.experiments.compare import check, compare, plan, trainings
    from spanshot.research.training.devices import processes

    keep_memory()
    known_split(split)
    runs = plan(configs, expand_home(settings), folder, seeds)
    check(runs, split)
    out = console(stderr=True)
    quiet = quiet or not processes().is_main_process
    for run, events in trainings(runs):
        name = _name(runs, run)
        opening = f"{name}: {'continuing' if is_unfinished(run.folder) else 'training in'} {run.folder}"
        finished = TrainingDisplay(out, opening, quiet=quiet).follow(events)
        if finished and not quiet:
            result = f"best dev F1 {percent(finished.best_f1)} at step {finished.best_step}"
            out.print(f"{name}: trained for {duration(finished.seconds)}, {result}", soft_wrap=True)
    if not processes().is_main_process:
        return None
    with progress_bars(quiet=quiet) as count:

        def show(run: PlannedRun, done: int, total: int) -> None:
            name = f"{_name(runs, run)}: evaluating"
            if done == 1 and not quiet and not out.is_terminal:
                out.print(f"{name} on {total} episodes", soft_wrap=True)
            count(name, done, total)

        return compare(runs, split, first, show)


def _name(runs: Sequence[PlannedRun], run: PlannedRun) -> str:
    return f"Run {runs.index(run) + 1} of {len(runs)}, {run.name} with seed {run.settings.seed}"
