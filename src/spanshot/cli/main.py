"""The command line. Each command parses, calls a plain function and shows what comes back."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from spanshot import __version__
from spanshot.cli import text_cli
from spanshot.errors import SpanshotError, SpanshotWarning

USER_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    help="Few-shot sequence labelling: show a handful of labelled sentences, find those entities in new text.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


app.add_typer(text_cli.app)


def main(arguments: list[str] | None = None) -> None:
    """The entry point. What a user can put right is told in one line, with exit code 2."""
    try:
        with _own_warnings_in_one_line():
            app(args=arguments, prog_name="spanshot")
    except SpanshotError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


@contextmanager
def _own_warnings_in_one_line() -> Iterator[None]:
    """Without the line of code that they come from, which says nothing to whoever gave the command."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **others: Any) -> None:
        if issubclass(category, SpanshotWarning):
            print(f"spanshot: {message}", file=sys.stderr)
        else:
            usual(message, category, *where, **others)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _fail(message: str) -> None:
    print(f"spanshot: error: {' '.join(message.splitlines())}", file=sys.stderr)
    raise SystemExit(USER_ERROR)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"spanshot {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def train(
    config: Annotated[Path, typer.Argument(help="Settings as TOML, such as configs/snips/esd.toml.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change, such as train.steps=100.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Folder of the run. By default runs/, then the config's name and the seed.")
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write for TensorBoard as well.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing but the result.")] = False,
) -> None:
    """Train a method. A run that was stopped goes on where it was last saved."""
    from accelerate import PartialState

    from spanshot.cli import display
    from spanshot.research.cli import commands

    out = display.console()
    folder, events = commands.train(config, overrides or [], run, tensorboard)
    opening = f"{folder} holds this run; going on with it" if commands.is_under_way(folder) else f"Training in {folder}"
    shown = display.TrainingDisplay(out, opening, quiet=quiet or not PartialState().is_main_process)
    try:
        ended = shown.follow(events)
    except KeyboardInterrupt:
        print(f"\nStopped; give the same command again to go on with {folder}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if ended and PartialState().is_main_process:
        shown.finished(folder, ended, commands.unbiased_f1(folder, ended.best_step))


@app.command()
def evaluate(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN... [KEY=VALUE]...",
            help="Folders of runs or of checkpoints; then settings of [data] and [method] to change, such as "
            "data.folder=FOLDER for a run from another machine.",
        ),
    ],
    split: Annotated[str, typer.Option(help="train, dev or test.")] = "test",
    episodes: Annotated[int, typer.Option(help="Only so many of the first episodes; 0 for all.", min=0)] = 0,
    on: Annotated[
        Path | None, typer.Option(help="Episodes of this file, as `spanshot sample` writes it, instead of a split.")
    ] = None,
    finetune: Annotated[bool, typer.Option("--finetune", help="Fine-tune on each support set.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Measure trained runs on a split of their corpus; several give mean and standard deviation.

    Writes evaluation_SPLIT.json into each run's folder, unless --episodes, --on, --finetune or a change of [method]
    makes the figures those of a part, of other text or of a variant.
    """
    from spanshot.cli import display
    from spanshot.research.cli import commands

    folders, overrides = _told_apart(runs)
    if not folders:
        raise typer.BadParameter("give the folder of at least one run")
    with display.counting(display.console(stderr=True)) as progress:
        measured = commands.evaluate(folders, split, overrides, episodes, progress, on, finetune=finetune)
    if as_json:
        print(json.dumps(commands.evaluation_document(measured), indent=2))
    else:
        display.show_evaluation(display.console(), measured)


@app.command()
def compare(
    configs: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG... [KEY=VALUE]...",
            help="Settings as TOML, one file for each method; then settings to change in all of them.",
        ),
    ],
    folder: Annotated[Path, typer.Option(help="Where the runs lie, each in a folder of its own.")] = Path(
        "runs/compare"
    ),
    split: Annotated[str, typer.Option(help="train, dev or test.")] = "test",
    episodes: Annotated[int, typer.Option(help="Only so many of the first episodes; 0 for all.", min=0)] = 0,
    seeds: Annotated[
        str, typer.Option(help="Train once with each of these, such as 1,2,3; by default with the config's own.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as markdown.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing but the table.")] = False,
) -> None:
    """Train and evaluate several methods on the same episodes, and print one table.

    Runs that were stopped go on, and what is done is not done again: give the same command as often as you like.
    Writes comparison.json into the folder; progress goes to standard error.
    """
    from accelerate import PartialState

    from spanshot.cli import display
    from spanshot.research.cli import commands, comparison

    if as_json and markdown:
        raise typer.BadParameter("give --json or --markdown, not both")
    files, overrides = _told_apart(configs)
    if not files:
        raise typer.BadParameter("give at least one config")
    shown = comparison.ComparisonDisplay(
        display.console(stderr=True), quiet=quiet or not PartialState().is_main_process
    )
    try:
        found = commands.compare(files, overrides, folder, commands.seeds_of(seeds), split, episodes, shown)
    except KeyboardInterrupt:
        print("\nStopped; give the same command again to go on with the comparison", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if found is None:
        return
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
    elif markdown:
        print(comparison.markdown(found))
    else:
        comparison.show_comparison(display.console(), found)


def _told_apart(arguments: list[str]) -> tuple[list[Path], list[str]]:
    """Paths, and KEY=VALUE settings; a path may have an equals sign too, if there is such a file."""
    paths = [Path(argument) for argument in arguments if "=" not in argument or Path(argument).exists()]
    return paths, [argument for argument in arguments if Path(argument) not in paths]


@app.command()
def sample(
    files: Annotated[list[Path], typer.Argument(help="Labelled text: CoNLL columns, or GENIA's JSON lines.")],
    output: Annotated[Path, typer.Option(help="Episode file to write.")],
    rule: Annotated[
        str,
        typer.Option(
            help="fewnerd: N labels drawn for each episode, K to 2K spans of each, all files together. "
            "minimum: every label of a file, at least K spans of each in a smallest support; each file is a domain."
        ),
    ] = "fewnerd",
    ways: Annotated[int | None, typer.Option(help="Labels of an episode; 5 if not given (fewnerd).")] = None,
    shots: Annotated[int, typer.Option(help="Least spans of each label in the support.")] = 1,
    query_shots: Annotated[
        int | None, typer.Option(help="The same for the query; as in the support if not given (fewnerd).")
    ] = None,
    query_size: Annotated[int | None, typer.Option(help="Query sentences; 20 if not given (minimum).")] = None,
    count: Annotated[int, typer.Option(help="Episodes to draw.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed draws the same episodes.")] = 1,
    kind: Annotated[str, typer.Option("--format", help="columns, genia, or guess by the content.")] = "guess",
    scheme: Annotated[str | None, typer.Option(help="Tags of columns: io, bio or bioes; guessed if not given.")] = None,
    label_column: Annotated[str, typer.Option(help="Where the tag stands in columns: first or last.")] = "last",
) -> None:
    """Draw few-shot episodes from labelled text, into a file to train or evaluate on."""
    from spanshot.research.cli import commands

    how = commands.Sampling(rule, ways, shots, query_shots, query_size, count, seed)
    drawn = commands.sample(files, kind, scheme, how, output, label_column)
    print(
        f"{output}: {len(drawn.episodes)} episodes over {len(drawn.labels)} labels; {drawn.support:.1f} support "
        f"and {drawn.query:.1f} query sentences on average"
    )
    if drawn.left_out:
        few = ", ".join(f"{label} ({spans})" for label, spans in drawn.left_out.items())
        print(f"Left out, for too few spans: {few}")


@app.command()
def methods() -> None:
    """List the methods that can be trained."""
    from spanshot.cli import display
    from spanshot.research.cli import commands

    display.show_methods(display.console(), commands.methods())


@app.command()
def settings(
    method: Annotated[str | None, typer.Argument(help="Show the settings of this method only.")] = None,
) -> None:
    """Show every setting of a config file, with its type, its default and what it does."""
    from spanshot.cli import display
    from spanshot.research.cli import commands

    display.show_settings(display.console(), commands.settings(method))
