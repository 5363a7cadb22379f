"""``spanshot evaluate``: evaluate trained runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from spanshot.cli.console import console, percent, progress_bars
from spanshot.cli.new_app import new_app
from spanshot.cli.options import Device, Json
from spanshot.evaluation.report import METRICS
from spanshot.evaluation.runs import RunReport, spread_over, spreads
from spanshot.files import write_text
from spanshot.json_text import JsonValue, to_json
from spanshot.research.cli.arguments import FirstEpisodes, Split, expand_home, split_arguments

TITLES: dict[str, str] = {
    "micro_f1": "micro F1 over all episodes",
    "mean_f1": "mean F1 over episodes",
    "precision": "precision",
    "recall": "recall",
    "f1_without_o_bias": "F1 without O bias",
}

app = new_app()


@app.command()
def evaluate(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|KEY=VALUE",
            help="Folders of runs or checkpoints, then settings of [data] and [method] to change, such as "
            "data.folder=FOLDER if the corpus has moved.",
        ),
    ],
    split: Split = "test",
    episodes: FirstEpisodes = 0,
    on: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Evaluate on the episodes of this file (written by `spanshot sample`) instead of a split.",
        ),
    ] = None,
    finetune: Annotated[bool, typer.Option("--finetune", help="Fine-tune on each support set.")] = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Evaluate trained runs; several runs give mean and standard deviation.

    Writes evaluation_SPLIT.json into each run's folder, unless --episodes, --on, --finetune or a setting of [method]
    changes what is evaluated.
    """
    folders, settings = split_arguments(runs)
    if not folders:
        raise typer.BadParameter("give the folder of at least one run")
    with progress_bars() as count:
        reports = evaluate_runs(
            list(map(Path, folders)), split, settings, episodes, count, on, finetune=finetune, device=device
        )
    if as_json:
        print(to_json(to_document(reports), indent=2))
    else:
        show_reports(console(), reports)


def evaluate_runs(
    runs: Sequence[Path],
    split: str,
    settings: Sequence[str],
    first: int,
    progress: Callable[[str, int, int], None],
    on: Path | None = None,
    *,
    finetune: bool = False,
    device: str | None = None,
) -> list[RunReport]:
    """Evaluate the runs one by one. Write the report into a run's folder, unless it is of a part or a variant."""
    from spanshot.allocator import keep_memory
    from spanshot.research.corpora.source import known_split
    from spanshot.research.experiments.measure import evaluation_file, measure

    keep_memory()
    known_split(split)
    is_variant = bool(first or on or finetune) or any(setting.startswith("method.") for setting in settings)
    reports = []
    for run in runs:

        def watch(done: int, total: int, name: str = str(run)) -> None:
            progress(name, done, total)

        report = measure(run, split, expand_home(settings), first, watch, on, finetune=finetune, device=device)
        if not is_variant:
            write_text(evaluation_file(run, split), [to_json(report.to_dict(counts_of_episodes=True), indent=2), "\n"])
        reports.append(report)
    return reports


def to_document(reports: Sequence[RunReport]) -> dict[str, JsonValue]:
    """Return one JSON document on all runs."""
    return {"runs": [report.to_dict() for report in reports], "over_runs": spreads(tuple(reports))}


def show_reports(out: Console, reports: Sequence[RunReport]) -> None:
    """Print two tables for each run, and one over all runs if there are several."""
    for report in reports:
        out.print(_scores(report))
        out.print(_labels(report))
    if len(reports) > 1:
        table = Table("score", "mean ± standard deviation", title=f"{len(reports)} runs", title_justify="left")
        for figure, title in TITLES.items():
            if over := spread_over(tuple(reports), figure):
                table.add_row(title, f"{percent(over.mean)} ± {percent(over.deviation)}")
        out.print(table)


def _scores(run: RunReport) -> Table:
    """Build the table of scores. A method without an O bias has one column only."""
    columns = [(f"O bias {run.o_bias:g}" if run.o_bias is not None else "value", run.report)]
    if run.without_o_bias:
        columns.append(("without O bias", run.without_o_bias))
    titles = [title for title, _ in columns]
    table = Table("score", *titles, title=f"{run.run}: {run.subject.split}", title_justify="left")
    intervals = [report.confidence() for _, report in columns]
    for metric in METRICS:
        cells = [
            f"{percent(report.f1(metric))} ({percent(interval[metric].low)} to {percent(interval[metric].high)})"
            for (_, report), interval in zip(columns, intervals, strict=True)
        ]
        is_metric = metric == run.metric
        title = f"{TITLES[metric]} *" if is_metric else TITLES[metric]
        table.add_row(title, *cells, style="bold" if is_metric else None)
    table.add_row("precision", *(percent(report.precision) for _, report in columns))
    table.add_row("recall", *(percent(report.recall) for _, report in columns))
    table.add_row("wrong boundary (FP-Span)", *(str(report.total.fp_span) for _, report in columns))
    table.add_row("wrong label (FP-Type)", *(str(report.total.fp_type) for _, report in columns))
    table.caption = (
        f"* the metric of this corpus ({run.subject.data['kind']}). {len(run.report.episodes)} episodes; in brackets "
        f"95 % bootstrap intervals. On average, learning a support set took {1000 * run.seconds_to_learn:.2f} ms and "
        f"tagging a sentence {1000 * run.seconds_per_sentence:.2f} ms."
    )
    table.caption_justify = "left"
    return table


def _labels(run: RunReport) -> Table:
    table = Table("label", "F1", "precision", "recall", "marked", "found", title="by label", title_justify="left")
    for label, counts in run.report.labels.items():
        scores = (counts.f1, counts.precision, counts.recall)
        table.add_row(label, *map(percent, scores), str(counts.tp + counts.fn), str(counts.tp + counts.fp))
    return table
