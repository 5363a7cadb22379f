"""``spanshot reproduce``: the tables and figures of ESD's paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanshot.cli.console import console, note
from spanshot.cli.new_app import new_app
from spanshot.cli.options import Json
from spanshot.errors import ConfigError
from spanshot.json_text import to_json
from spanshot.research.cli.arguments import Quiet
from spanshot.research.cli.train import INTERRUPTED

if TYPE_CHECKING:
    from spanshot.research.experiments.reproduce.results import Result

NAMES = "snips, fewnerd, ablation, nested, postprocessing, efficiency, errors, noise, search, all"

app = new_app()


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help=f"Experiments: {NAMES}.")],
    budget: Annotated[
        str,
        typer.Option(
            metavar="BUDGET",
            help="small: a test on generated data, in minutes. laptop: a small encoder, hours on a CPU. "
            "paper: the paper's settings, for a GPU.",
        ),
    ] = "small",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder with snips, fewnerd/inter, fewnerd/intra (or intra_like), genia and, if you have it, ace05. "
            "Default: data; the small budget generates its own.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for runs and results. Default: runs/reproduce-BUDGET."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of runs at the same time, one process each.")
    ] = 1,
    tables: Annotated[
        bool, typer.Option("--tables", help="Train nothing; write the results of the finished runs.")
    ] = False,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Records of finished runs, without weights. Runs in it are not repeated; finished runs are added.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the tables and figures of ESD's paper.

    The paper's figures stand next to ours. Writes Markdown, HTML, JSON and SVG plots. Safe to re-run:
    interrupted runs resume, finished ones are skipped, and experiments share their runs.
    """
    results = reproduce_experiments(names, budget, data, out, jobs, tables=tables, records=records, quiet=quiet)
    if as_json:
        print(to_json([result.to_dict() for result in results], indent=2))


def reproduce_experiments(
    names: list[str],
    budget: str,
    data: Path | None,
    out: Path | None,
    jobs: int,
    *,
    tables: bool = False,
    records: Path | None = None,
    quiet: bool = False,
) -> list[Result]:
    """Run unfinished jobs and return all results."""
    from spanshot.research.cli.reproduce_display import Display
    from spanshot.research.experiments.reproduce.catalogue import find_experiments
    from spanshot.research.experiments.reproduce.plots import can_draw
    from spanshot.research.experiments.reproduce.run import reproduce as run
    from spanshot.research.experiments.reproduce.workspace import Workspace

    if budget == "small" and data is not None:
        raise ConfigError("--budget small generates its own data; leave --data out")
    experiments = find_experiments(names)
    out = out or Path("runs") / f"reproduce-{budget}"
    workspace = Workspace(budget, data or (out / "data" if budget == "small" else Path("data")), out)
    with Display(console(stderr=True), jobs, quiet=quiet) as display:
        try:
            results = run(experiments, workspace, jobs, display.begin, only_tables=tables, records=records)
        except KeyboardInterrupt:
            note(f"interrupted; results so far are in {out}; run the same command again to continue")
            raise typer.Exit(INTERRUPTED) from None
    if not quiet:
        for result in results:
            print(f"{result.title}: {out / result.name / 'results.md'}", file=sys.stderr)
        if not can_draw() and any(result.charts for result in results):
            note("no plots were drawn: they need matplotlib; install it with `pip install 'spanshot[reproduce]'`")
    return results
