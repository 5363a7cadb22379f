"""The entry point of the command line. Each command is one file, imported when the command is called."""

from __future__ import annotations

import errno
import importlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple, TextIO

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from spanshot import __version__
from spanshot.cli.console import note, visible
from spanshot.errors import SpanshotError, SpanshotWarning
from spanshot.optional import missing

if TYPE_CHECKING:
    from typer._click import Command, Context

USER_ERROR, INTERRUPTED = 2, 130
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_TRAINING_PACKAGES = {"torch", "transformers", "accelerate", "onnx", "onnxscript", "huggingface_hub"}


class _Entry(NamedTuple):
    """A command: its module, its line in ``spanshot --help``, and its panel there."""

    module: str
    help: str
    panel: str


_TAG, _TRAIN = "Tag text", "Train and compare methods"
COMMANDS = {
    "tag": _Entry("spanshot.cli.tag", "Find entities in text, given a few labelled examples or label names.", _TAG),
    "tag-corpus": _Entry(
        "spanshot.cli.tag_corpus", "Tag many files with several processes or on Ray; interrupted jobs continue.", _TAG
    ),
    "ui": _Entry("spanshot.cli.ui", "Annotate text on a local page, with suggestions.", _TAG),
    "convert": _Entry("spanshot.cli.convert", "Convert labelled text from one format to another.", _TAG),
    "learn": _Entry("spanshot.cli.learn", "Learn examples or label names once and save the tagger.", _TAG),
    "check": _Entry("spanshot.cli.check", "Check examples for mistakes and weak labels.", _TAG),
    "evaluate-examples": _Entry(
        "spanshot.cli.evaluate_examples", "Measure how well examples work, by leaving some out or on a test file.", _TAG
    ),
    "suggest": _Entry("spanshot.cli.suggest", "List the texts that are most worth annotating next.", _TAG),
    "serve": _Entry(
        "spanshot.cli.serve", "Answer HTTP requests: create taggers from examples, and tag texts with them.", _TAG
    ),
    "info": _Entry("spanshot.cli.info", "Show versions, model, threads and paths, for bug reports.", _TAG),
    "train": _Entry("spanshot.research.cli.train", "Train a method on a corpus.", _TRAIN),
    "evaluate": _Entry("spanshot.research.cli.evaluate", "Evaluate trained runs.", _TRAIN),
    "compare": _Entry("spanshot.research.cli.compare", "Train and evaluate several methods; print one table.", _TRAIN),
    "reproduce": _Entry("spanshot.research.cli.reproduce", "Reproduce the tables and figures of ESD's paper.", _TRAIN),
    "sample": _Entry("spanshot.research.cli.sample", "Sample few-shot episodes from labelled text.", _TRAIN),
    "export": _Entry("spanshot.research.cli.export", "Export a trained model for the base install.", _TRAIN),
    "methods": _Entry("spanshot.research.cli.methods", "List the methods that can be trained.", _TRAIN),
    "settings": _Entry("spanshot.research.cli.settings", "List the settings of config files.", _TRAIN),
}


class _LazyGroup(TyperGroup):
    """Lists all commands without importing them; imports the one that is called."""

    @override
    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        entry = COMMANDS.get(cmd_name)
        return TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.panel) if entry else None

    @override
    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else command, rest


def load_command(name: str) -> Command:
    """Import a command."""
    command = typer.main.get_command(importlib.import_module(COMMANDS[name].module).app)
    command.name = name
    return command


app = typer.Typer(
    cls=_LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _show_version(requested: bool) -> None:
    if requested:
        print(f"spanshot {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Log more to standard error; -vv for debugging.")
    ] = 0,
) -> None:
    """Few-shot sequence labelling: give a few labelled sentences, find those entities in new text.

    Exit codes: 0 success, 1 finished with problems (such as skipped lines), 2 error, 130 interrupted.
    """
    _set_up_logging((logging.NOTSET, logging.INFO, logging.DEBUG)[min(verbose, 2)])


def _set_up_logging(level: int) -> None:
    """Log to standard error from this level on; ``NOTSET``: leave it to the program that calls the command."""

    class Visible(logging.Formatter):
        """Escapes control characters."""

        @override
        def format(self, record: logging.LogRecord) -> str:
            return visible(super().format(record))

    handler = logging.StreamHandler()
    handler.setFormatter(Visible("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("spanshot")
    logger.handlers[:] = [handler] if level else []
    logger.setLevel(level)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit. Errors that users can fix are one line on standard error, with exit code 2."""
    _set_up_streams()
    sys.exit(run(arguments))


def _set_up_streams() -> None:
    """Write UTF-8 to files and pipes, whatever the locale. On a terminal, escape characters that it cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = typer.main.get_command(app)
    try:
        with _short_warnings(), command.make_context("spanshot", arguments or ["--help"]) as context:
            command.invoke(context)
            sys.stdout.flush()
        return 0
    except typer.Exit as ended:
        return ended.exit_code
    except SpanshotError as error:
        return _failed(str(error))
    except _UsageError as error:
        return _failed(_usage_message(error))
    except (KeyboardInterrupt, typer.Abort):
        note("interrupted")
        return INTERRUPTED
    except OSError as error:
        if error.errno == errno.EPIPE or (sys.platform == "win32" and error.errno == errno.EINVAL):
            _discard_output()  # the reader, such as `head`, has closed the pipe
            return 0
        return _failed(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except ModuleNotFoundError as error:
        if error.name not in _TRAINING_PACKAGES:
            raise
        return _failed(str(missing(error.name, "train")))


def _usage_message(error: Exception) -> str:
    """Describe the problem with the arguments and point to the help."""
    format_message, context = getattr(error, "format_message", error.__str__), getattr(error, "ctx", None)
    path = context.command_path if context else "spanshot"
    return f"{str(format_message()).rstrip('.')} (see `{path} --help`)"


def _failed(message: str) -> int:
    note(f"error: {message}")
    return USER_ERROR


def _discard_output() -> None:
    """Send further output nowhere, so that flushing at exit does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Show this package's warnings as one line, without the source line that raised them."""
    show_default = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, SpanshotWarning):
            note(str(message))
        else:
            show_default(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
