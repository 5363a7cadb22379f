"""Measure how well models learn from names and examples, and write the tables of docs/results.md.

Every command writes its figures to a JSON file after each row, and at the end a Markdown table beside it (.txt). Safe
to re-run: rows that were measured with the same weights are skipped. `pages` puts the tables into the documentation.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spanshot.errors import SpanshotError
from spanshot.files import write_text
from spanshot.research.experiments.ledger import Ledger

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
log = Console(stderr=True, highlight=False)
RESULTS = Path("docs/results")
GUESSES = Path(".cache/accuracy/guesses.json")

Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="JSON file of the figures.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the figure as SVG.")]
First = Annotated[int, typer.Option(metavar="N", help="Use only the first N episodes of each file (0: all).")]
Systems = Annotated[
    list[str],
    typer.Option(
        "--system",
        help="default (the packaged model), int8 (the same with 8-bit products), tagger (the encoder fine-tuned as a "
        "token tagger), spacy (blank), or the folder of a model. Repeatable.",
    ),
]
Corpora = Annotated[
    list[Path], typer.Argument(metavar="CORPUS...", help="JSON lines with tokens and entities that no training used.")
]
UserLike = Annotated[Path, typer.Argument(help="Folder of episode files DOMAIN_1.jsonl and DOMAIN_5.jsonl.")]
DEFAULT_SYSTEM = ("default",)
HELD_OUT = ("hwu_home_assistant", "bionlp_infectious_disease", "redocred_wikipedia")
"""Corpora that no training used."""


@app.callback(help=__doc__)
def _root() -> None:
    pass


def _report(out: Path, text: str, plot: Path | None = None, title: str = "") -> None:
    print(text)
    if plot:
        text = f"{text.strip()}\n\n![{title}](pictures/{plot.name})"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out.with_suffix(".txt"), [text.strip(), "\n"])


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
        subject = find_system(name)
        modes = [choice for choice in subject.modes if choice in mode or not mode]
        table.measure(ledger, table.episode_files(folder), subject, modes, first, log.print)
    _report(out, table.tables(ledger))
    _report(out.with_stem(f"{out.stem}-short"), table.short_table(ledger, DEFAULT_SYSTEM[0]))


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
    if plot:
        plot_growth(table.curves(ledger), plot)
    _report(out, table.tables(ledger), plot, "F1 over the number of example texts")


@app.command()
def calibration(
    folder: UserLike,
    out: Out = GUESSES,
    plot: Plot = None,
    lowest: Annotated[float, typer.Option(help="Leave out entities with a lower score.")] = 0.1,
) -> None:
    """Reliability of scores on users' domains: as returned, and mapped by a fit on the other domains."""
    from spanshot.research.experiments import calibration as table
    from spanshot.research.experiments.plots import plot_reliability
    from spanshot.research.experiments.systems import BOTH, Options, find_system
    from spanshot.research.experiments.user_like import episode_files

    ledger = Ledger(out, table.KEYS)
    system = find_system("default", Options(threshold=table.LOWEST))
    table.measure(ledger, episode_files(folder), system, (BOTH,), log.print)
    if plot:
        plot_reliability(table.reliabilities(ledger, lowest), plot)
    _report(out.with_name("calibration.txt"), table.tables(ledger, lowest), plot, "Share of right entities over score")


@app.command("fit-scores")
def fit_scores(
    folder: UserLike,
    scores: Annotated[Path, typer.Argument(help="TOML file to write, for tools/embed_model.py --scores.")],
    model: Annotated[str, typer.Option(help="Folder of the model; by default the packaged one.")] = "default",
    out: Out = GUESSES,
) -> None:
    """Fit the map from logits to scores, and the default thresholds, to users' domains."""
    from spanshot.research.experiments import calibration as table
    from spanshot.research.experiments.score_fitting import fit
    from spanshot.research.experiments.systems import MODES, Options, find_system, score_settings
    from spanshot.research.experiments.user_like import episode_files

    ledger = Ledger(out, table.KEYS)
    system = find_system(model, Options(threshold=table.LOWEST))
    table.measure(ledger, episode_files(folder), system, MODES, log.print)
    fitted = fit(ledger, score_settings(model))
    write_text(scores, [f"{name} = {value}\n" for name, value in asdict(fitted.settings).items()])
    print(fitted.summary)


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
        subject = find_system(name, Options(nested=nested, finetune=finetune))
        for file in files:
            table.measure(ledger, file, subject, first, log.print)
    _report(out, table.tables(ledger))


@app.command()
def heads(
    folder: UserLike,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File of the table, in Markdown.")] = RESULTS
    / "heads.txt",
    first: First = 1,
) -> None:
    """Heads on the same span vectors, on users' domains: logistic, ridge, prototypes, nearest neighbour, O weight."""
    from spanshot.research.experiments import heads as table
    from spanshot.research.experiments.user_like import episode_files

    source = table.DefaultSource()
    compared = table.heads(source.head_settings()) | table.ridge_grid()
    _report(out, table.tables(table.measure(source, episode_files(folder), compared, first, log.print)))


@app.command()
def trainings(
    folder: UserLike,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Finished trainings on many corpora.")],
    out: Out = RESULTS / "trainings.json",
) -> None:
    """F1 on users' domains of models trained in different ways: number of corpora, encoder, method."""
    from spanshot.research.experiments import trainings as table
    from spanshot.research.experiments.user_like import episode_files

    ledger = Ledger(out, table.KEYS)
    for run in runs:
        table.measure(ledger, run, episode_files(folder), GUESSES.parent / "trainings", log.print)
    _report(out, table.tables(ledger))


@app.command()
def cost(
    corpus: Annotated[Path, typer.Argument(help="JSON lines with tokens and entities, at least 3,200.")],
    out: Out = RESULTS / "cost.json",
    rounds: Annotated[int, typer.Option(help="Rounds of each timing.")] = 4,
) -> None:
    """Time and memory of learning and tagging against the bare encoder, for 25, 400 and 3,000 examples."""
    from spanshot.research.experiments import cost as table

    ledger = Ledger(out, table.KEYS)
    table.measure(ledger, corpus, rounds, log.print)
    checked, encoded = table.seconds_to_check(corpus)
    note = f"Leaving out each of 1,000 examples in turn: {checked:.1f} s (encoding them: {encoded:.1f} s)."
    _report(out, f"{table.tables(list(ledger))}\n\n{note}")


@app.command("suggest-order")
def suggest_order(
    corpora: Corpora,
    out: Out = RESULTS / "suggest-order.json",
    draws: Annotated[int, typer.Option(help="Random draws of texts to annotate.")] = 5,
) -> None:
    """F1 after annotating 5, 10, 20 and 40 texts in the order of `suggest`, against random order."""
    from spanshot.research.experiments import suggestion_order as table
    from spanshot.research.experiments.systems import find_system, learn_tagger

    identity = find_system(DEFAULT_SYSTEM[0]).identity
    orders = {"random": table.random_order, "suggested": table.suggested_order}
    ledger = Ledger(out, table.KEYS)
    for corpus in corpora:
        table.measure(ledger, corpus, orders, learn_tagger, identity, draws, log.print)
    _report(out, table.tables(ledger))


@app.command()
def pages(
    files: Annotated[list[Path], typer.Argument(metavar="PAGE...", help="Pages with '<!-- table: NAME -->' marks.")],
    tables: Annotated[Path, typer.Option(help="Folder of the measured tables, NAME.txt.")] = RESULTS,
) -> None:
    """Put measured tables into pages of the documentation."""
    from spanshot.research.experiments.pages import fill_pages

    for page in fill_pages(files, tables):
        print(page)


@app.command("all")
def measure_all(
    folder: Annotated[Path, typer.Argument(help="Folder of the corpora: user_like, corpora, fewnerd, genia, …")],
    episode_folder: Annotated[Path, typer.Option(help="Folder for sampled episodes.")] = Path(".cache/accuracy"),
) -> None:
    """Measure all tables of the default model and put them into the documentation (one to two hours on one core)."""
    pictures, domains = Path("docs/pictures"), folder / "user_like"
    held_out = [folder / "corpora" / f"{name}.jsonl" for name in HELD_OUT]
    user_like(domains)
    calibration(domains, plot=pictures / "calibration.svg")
    episodes([folder / f"fewnerd/inter/episodes/test_5_{shots}.jsonl" for shots in (1, 5)])
    episode_folder.mkdir(parents=True, exist_ok=True)
    genia, movie = episode_folder / "genia.jsonl", episode_folder / "movie.jsonl"
    _sample(folder / "genia/test.jsonl", genia)
    episodes([genia], nested=True)
    _sample(folder / "mit_movie_trivia/trivia10k13test.bio", movie, "--label-column", "first")
    episodes([movie])
    growth(held_out, plot=pictures / "growth.svg")
    heads(domains)
    suggest_order(held_out)
    cost(held_out[-1])
    pages([Path("README.md"), Path("docs/results.md"), Path("docs/model-card.md")])


def _sample(corpus: Path, out: Path, *options: str) -> None:
    rule = ["--rule", "minimum", "--shots", "5", "--query-size", "20", "--count", "100", "--seed", "1"]
    command = [sys.executable, "-m", "spanshot", "sample", str(corpus), *rule, *options, "--output", str(out)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    try:
        app()
    except SpanshotError as error:
        sys.exit(f"error: {error}")
