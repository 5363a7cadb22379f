"""Measure how well models learn from names and examples, and write the tables of docs/results.md.

Every command writes its figures to a JSON file after each row and prints Markdown tables. Safe to re-run: rows that
were measured with the same weights are skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spanshot.research.experiments.ledger import Ledger

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
log = Console(stderr=True, highlight=False)
RESULTS = Path("docs/results")

Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="JSON file of the figures.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the figure as SVG.")]
First = Annotated[int, typer.Option(metavar="N", help="Use only the first N episodes of each file (0: all).")]
Systems = Annotated[
    list[str],
    typer.Option(
        "--system",
        help="default (the packaged model), tagger (the encoder fine-tuned as a token tagger), spacy (blank), or the "
        "folder of a model. Repeatable.",
    ),
]
Corpora = Annotated[
    list[Path], typer.Argument(metavar="CORPUS...", help="JSON lines with tokens and entities that no training used.")
]
UserLike = Annotated[Path, typer.Argument(help="Folder of episode files DOMAIN_1.jsonl and DOMAIN_5.jsonl.")]
DEFAULT_SYSTEM = ("default",)


@app.callback(help=__doc__)
def _root() -> None:
    pass


@app.command("user-like")
def user_like(
    folder: UserLike,
    out: Out = RESULTS / "user-like.json",
    system: Systems = DEFAULT_SYSTEM,  # type: ignore[assignment]
    mode: Annotated[
        list[str], typer.Option(help="'names and examples', 'examples only' or 'names only'. Repeatable. Default: all.")
    ] = (),  # type: ignore[assignment]
    first: First = 0,
) -> None:
    """F1 on users' domains with one and with five examples per label, with and without label names."""
    from spanshot.research.experiments import user_like as table
    from spanshot.research.experiments.systems import find_system

    ledger = Ledger(out, table.KEYS)
    for name in system:
        found = find_system(name)
        modes = [own for own in found.modes if own in mode or not mode]
        table.measure(ledger, table.episode_files(folder), found, modes, first, log.print)
    print(table.tables(ledger))


@app.command()
def growth(
    corpora: Corpora,
    out: Out = RESULTS / "growth.json",
    plot: Plot = None,
    draws: Annotated[int, typer.Option(help="Random draws of example texts.")] = 5,
    finetune: Annotated[
        bool, typer.Option(help="Also fine-tune the encoder on 100 examples, for comparison of F1 and time.")
    ] = True,
) -> None:
    """F1 with 5 to 200 example texts on held-out corpora, and fine-tuning the same encoder on 100."""
    from spanshot.research.experiments import growth as table
    from spanshot.research.experiments.plots import plot_growth
    from spanshot.research.experiments.systems import find_system

    ledger = Ledger(out, table.KEYS)
    systems = {find_system("default"): table.SIZES}
    if finetune:
        systems[find_system("tagger")] = (100,)
    for corpus in corpora:
        table.measure(ledger, corpus, systems, draws, log.print)
    print(table.tables(ledger))
    if plot:
        plot_growth(table.curves(ledger), plot)


@app.command()
def calibration(
    folder: UserLike,
    out: Out = RESULTS / "calibration.json",
    plot: Plot = None,
    lowest: Annotated[float, typer.Option(help="Leave out entities with a lower score.")] = 0.05,
) -> None:
    """Reliability of scores on users' domains: as returned, and mapped by a fit on the other domains."""
    from spanshot.research.experiments import calibration as table
    from spanshot.research.experiments.plots import plot_reliability
    from spanshot.research.experiments.systems import Options, find_system
    from spanshot.research.experiments.user_like import episode_files

    ledger = Ledger(out, table.KEYS)
    table.measure(ledger, episode_files(folder), find_system("default", Options(threshold=table.LOWEST)), log.print)
    print(table.tables(ledger, lowest))
    if plot:
        plot_reliability(table.reliabilities(ledger, lowest), plot)


@app.command()
def episodes(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Episode files.")],
    out: Out = RESULTS / "episodes.json",
    system: Systems = DEFAULT_SYSTEM,  # type: ignore[assignment]
    nested: Annotated[bool, typer.Option("--nested", help="Find entities within entities.")] = False,
    finetune: Annotated[bool, typer.Option("--finetune", help="Fine-tune models on each support set.")] = False,
    first: First = 0,
) -> None:
    """Micro F1 on episode files such as Few-NERD's, or those that `spanshot sample` writes."""
    from spanshot.research.experiments import episode_table as table
    from spanshot.research.experiments.systems import Options, find_system

    ledger = Ledger(out, table.KEYS)
    for name in system:
        found = find_system(name, Options(nested=nested, finetune=finetune))
        for file in files:
            table.measure(ledger, file, found, first, log.print)
    print(table.tables(ledger))


if __name__ == "__main__":
    app()
