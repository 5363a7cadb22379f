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
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write: a new or empty one, or a model.")
    ],
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
    from spanshot.heads.settings import ScoreSettings
    from spanshot.research import checkpoint
    from spanshot.research.export_model import SCORES, engine_files
    from spanshot.settings import build, read_table

    refuse_same_file("--output", output, [run])
    check_target(output, "model")
    saved = checkpoint.load(run)
    chosen = build(ScoreSettings, read_table(scores)) if scores else SCORES
    files = engine_files(saved.method, chosen)
    described = checkpoint.model_files(saved.method, saved.settings)
    write_checkpoint(output, "model", {**files, checkpoint.MODEL: described[checkpoint.MODEL]})
    size = sum(map(len, files.values())) / 1e6
    print(visible(f"{output}: {size:.1f} MB"))
