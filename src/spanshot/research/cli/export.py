"""``spanshot export``: write a trained model for the base install."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanshot.checkpoint import check_target, write_checkpoint
from spanshot.cli.console import visible
from spanshot.cli.new_app import new_app
from spanshot.cli.output import refuse_same_file

app = new_app()


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run or checkpoint of the method `linear`.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder to write: a new or empty one, or a model. Default: RUN-exported.",
        ),
    ] = None,
    int8: Annotated[
        bool, typer.Option("--int8/--no-int8", help='Also write the graph for 8-bit weights (`dtype="int8"`).')
    ] = True,
    scores: Annotated[
        Path | None,
        typer.Option(
            "--scores", metavar="FILE", help="TOML file with calibration and thresholds. Default: those of the package."
        ),
    ] = None,
) -> None:
    """Export a trained model for the base install.

    The result runs without torch: `spanshot tag --model FOLDER`. Writes graphs for onnxruntime, weights in
    half precision, the tokenizer and settings.
    """
    folder = output or default_output(run)
    size = export_run(run, folder, scores, int8=int8)
    print(visible(f"{folder}: {size / 1e6:.1f} MB"))


def default_output(run: Path) -> Path:
    """Return the folder for an exported model: ``runs/own-exported`` for ``runs/own``."""
    named = run.resolve() if run.name in {"", ".."} else run
    return named.with_name(f"{named.name}-exported")


def export_run(run: Path, folder: Path, scores: Path | None = None, *, int8: bool = True) -> int:
    """Write the model of a run for the base install and return its size in bytes."""
    from spanshot.heads.settings import ScoreSettings
    from spanshot.research import checkpoint
    from spanshot.research.export_model import exported_files
    from spanshot.settings import build, read_table

    refuse_same_file("--output", folder, [run])
    check_target(folder, "model")
    chosen = build(ScoreSettings, read_table(scores)) if scores else None
    files = exported_files(checkpoint.load(run), chosen, int8=int8)
    write_checkpoint(folder, "model", files)
    return sum(map(len, files.values()))
