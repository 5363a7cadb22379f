"""``spanshot learn``: learn examples once and save the tagger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanshot.checkpoint import check_target
from spanshot.cli import options
from spanshot.cli.console import visible
from spanshot.cli.new_app import new_app
from spanshot.cli.output import refuse_same_file

app = new_app()


@app.command()
def learn(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Folder to write: a new or empty one, or a tagger to be replaced."
        ),
    ],
    examples: options.ExampleFiles = None,
    model: options.ModelFolder = None,
    labels: options.Labels = None,
    threshold: options.Thresholds = None,
    precision: options.Precision = None,
    nested: options.Nested = False,
    finetune: options.Finetune = False,
    kind: options.Format = None,
    device: options.Device = None,
) -> None:
    """Learn examples or label names once and save the tagger.

    `spanshot tag --model FOLDER` and `spanshot.load` then need no examples.
    """
    if not examples and not labels:
        raise typer.BadParameter("no examples; use --examples FILE, or --labels NAMES")
    examples = examples or []
    refuse_same_file("--output", output, [*examples, *([model] if model else [])])
    check_target(output, "tagger")
    tagger = options.make_tagger(
        options.read_example_files(examples, kind),
        model,
        labels=options.parse_labels(labels or []),
        thresholds=threshold or [],
        precision=precision,
        nested=nested,
        finetune=finetune,
        device=device,
    )
    tagger.save(output)
    count = len(tagger.support.sentences)
    print(visible(f"{output}: {', '.join(tagger.labels)}, from {count} {'example' if count == 1 else 'examples'}"))
