"""``spanshot tag-corpus``: tag a column of many files, on this machine or on a Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from spanshot.cli.console import console, duration, note, visible
from spanshot.cli.new_app import new_app
from spanshot.corpus import CorpusPlan, CorpusReport, CorpusSettings, plan_corpus, tag_corpus
from spanshot.corpus.job import Progress as Report
from spanshot.corpus.settings import FORMATS

FAILED_ROWS = 1
"""Exit code if rows could not be tagged."""
_SECONDS_BETWEEN_NOTES = 60.0

app = new_app()


@app.command(name="tag-corpus")
def command(
    tagger: Annotated[
        str, typer.Option("--tagger", metavar="FOLDER", help="Folder of a tagger that `spanshot learn` wrote.")
    ],
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input",
            "-i",
            metavar="PATTERN",
            help="Files to tag: a path, a URL such as s3://bucket/a.parquet, or a pattern in quotes. Parquet, JSON "
            "lines and CSV, also compressed (.gz, .zst). Can be repeated.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder to write: a new or empty one, or the one of an interrupted job, which then continues.",
        ),
    ],
    column: Annotated[
        str, typer.Option("--column", metavar="NAME", help="Column or field with the texts.")
    ] = CorpusSettings.column,
    entities: Annotated[
        str, typer.Option("--entities", metavar="NAME", help="Name of the new column of entities.")
    ] = CorpusSettings.entities,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help=f"Format of the output: {', '.join(FORMATS)}. Default: Parquet, or JSON lines for JSON lines.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of workers, with one thread each. Default: the number of physical cores, or of CPUs of the "
            "cluster.",
        ),
    ] = None,
    runner: Annotated[
        str, typer.Option(metavar="NAME", help="local: processes on this machine. ray: Ray Data.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of a Ray cluster, such as auto or host:6379."),
    ] = None,
    rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Rows per output file, a multiple of 256. A worker that dies loses at most the work on these.",
        ),
    ] = CorpusSettings.rows,
    max_characters: Annotated[
        int, typer.Option(metavar="N", min=1, help="Do not tag longer texts; write them to the failed rows.")
    ] = CorpusSettings.max_characters,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and an estimate from a sample; write nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Tag many files with several processes or on Ray.

    Writes OUTPUT/tagged (all columns and the entities), OUTPUT/failed (rows that could not be tagged, with the reason)
    and OUTPUT/manifest.jsonl (finished parts). The exit code is 1 if rows failed.

    Safe to re-run: an interrupted job continues where it stopped, and each row is written exactly once. The number of
    workers and the runner may change between runs; tagger, inputs and other settings may not.
    """
    settings = CorpusSettings(column, entities, to or "", rows, max_characters)
    if dry_run:
        plan = plan_corpus(tagger, inputs, output, settings, workers=workers, runner=runner, address=address)
        print(visible(_describe(plan, output)))
        return
    with _progress(quiet=quiet) as progress:
        report = tag_corpus(
            tagger, inputs, output, settings, workers=workers, runner=runner, address=address, progress=progress
        )
    print(visible(_summary(report, output)))
    if report.failed:
        note(f"{_count(report.failed, 'row')} could not be tagged; see {output / 'failed'}")
        raise typer.Exit(FAILED_ROWS)


def _describe(plan: CorpusPlan, output: Path) -> str:
    """Return the text of a plan."""
    lines = [
        f"{_count(plan.files, 'file')}, {_count(plan.rows, 'row')}, {_count(plan.parts, 'part')} in {output}",
        f"{plan.rows_done:,} rows are done" if plan.rows_done else "nothing is done yet",
    ]
    if plan.rows_per_second:
        lines.append(f"a sample took one worker {1000 / plan.rows_per_second:.3g} ms per row")
        lines.append(f"{_count(plan.workers, 'worker')}: about {duration(plan.seconds)} for the rest")
    return "\n".join(lines)


def _summary(report: CorpusReport, output: Path) -> str:
    """Return the result of a job as one line."""
    text = f"{output}: {_count(report.rows, 'row')}, {report.entities:,} entities, {report.failed:,} failed"
    fresh = report.rows + report.failed - report.rows_before
    if report.rows_before:
        text += f"; {report.rows_before:,} rows were done before"
    if fresh:
        text += f"; {duration(report.seconds)}, {fresh / max(report.seconds, 1e-3):,.0f} rows/s"
    return text


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Report]:
    """Show a bar with rows per second and the time remaining; in a log file, a line per minute."""
    out = console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.fields[rows]}"), TimeRemainingColumn())
    began = last_note = time.monotonic()
    with Progress(*columns, console=out, disable=quiet or not out.is_terminal, transient=True) as bars:
        task: TaskID | None = None

        def report(done: int, before: int, total: int) -> None:
            nonlocal task, last_note
            now = time.monotonic()
            speed = (done - before) / max(now - began, 1e-3)
            rows = f"{done:,} of {total:,} rows, {speed:,.0f} rows/s"
            if task is None:
                task = bars.add_task("", total=total - before, rows=rows)
            bars.update(task, completed=done - before, rows=rows)
            if not quiet and not out.is_terminal and now - last_note > _SECONDS_BETWEEN_NOTES:
                last_note = now
                note(f"{rows}, {duration((total - done) / speed) if speed else 'unknown time'} remaining")

        yield report
