"""``spanshot evaluate-examples``: measure how well examples work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanshot.cli import options
from spanshot.cli.console import console, note, progress_bars
from spanshot.cli.example_results import Evaluation, evaluation_page, show_evaluation
from spanshot.cli.new_app import new_app
from spanshot.cli.output import refuse_same_file
from spanshot.errors import ConfigError, did_you_mean
from spanshot.evaluation.thresholds import suggest_thresholds
from spanshot.examples.leave_one_out import (
    MOST_EXAMPLES,
    ExampleResults,
    Learn,
    TextTagger,
    Watch,
    leave_one_out,
    tag_examples,
)
from spanshot.files import replacing
from spanshot.json_text import to_json
from spanshot.types import Sentence, Span, SupportSet

if TYPE_CHECKING:
    from spanshot.model import Model

FINETUNED_PARTS = 5
"""Parts to hold out with --finetune, which fine-tunes once per part."""
Most = Annotated[
    int,
    typer.Option("--most", metavar="N", min=0, help="Sample at most N examples for leave-one-out (0: all)."),
]

app = new_app()


@app.command()
def evaluate_examples(
    files: options.ExampleArguments,
    on: Annotated[
        list[Path] | None,
        typer.Option(
            "--on", metavar="FILE", help="Evaluate on the labelled sentences of this file instead, in any format."
        ),
    ] = None,
    model: options.ModelFolder = None,
    threshold: options.Thresholds = None,
    nested: options.Nested = False,
    finetune: options.Finetune = False,
    most: Most = MOST_EXAMPLES,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report with all errors as an HTML page.")
    ] = None,
    as_json: options.Json = False,
    kind: options.Format = None,
    device: options.Device = None,
) -> None:
    """Measure how well examples work, by leaving some out or on a test file.

    Without --on, each example (or each of 25 parts) is tagged by a tagger that has learned the others. Prints
    precision, recall and F1 by label, confusions, and score thresholds that would improve F1.
    """
    refuse_same_file("--html", html, [*files, *(on or [])])
    sentences = options.read_example_files(files, kind)
    gold = options.read_example_files(on, kind) if on else None
    learn = learner(options.load_model_or_default(model, device), nested=nested, finetune=finetune)
    limits = options.parse_thresholds(threshold or [])
    with progress_bars() as count:

        def watch(done: int, total: int) -> None:
            count("evaluating", done, total)

        if gold is None:
            parts = {"parts": FINETUNED_PARTS} if finetune else {}
            results = leave_one_out(learn, sentences, watch, most=most, **parts)
            method = "Leave-one-out: each example tagged by a tagger that learned the others"
        else:
            results = evaluate_on(learn, sentences, gold, watch)
            method = f"Learned {len(sentences)} examples, evaluated on {', '.join(map(str, on or []))}"
    evaluation = evaluated(method, results, limits or 0.0)
    if html:
        with replacing(html) as file:
            file.writelines(evaluation_page(evaluation, "spanshot: evaluation of examples"))
        note(f"{html}: written")
    if as_json:
        print(to_json(evaluation.to_dict(), indent=2))
    else:
        show_evaluation(console(), evaluation)


def learner(model: Model, *, nested: bool, finetune: bool) -> Learn:
    """Return a function that learns examples. It applies no threshold, so that thresholds can be chosen later."""

    def learn(support: SupportSet) -> TextTagger:
        return model.learn(support, nested=nested, finetune=finetune)

    return learn


def evaluate_on(
    learn: Learn, sentences: Sequence[Sentence], gold: Sequence[Sentence], watch: Watch | None = None
) -> ExampleResults:
    """Learn the examples and tag the gold sentences. All gold labels count, even those without an example."""
    labels = {span.label for sentence in gold for span in sentence.spans}
    tagged = tag_examples(learn, sentences, list(enumerate(gold)))
    if watch:
        watch(1, 1)
    return ExampleResults(tuple(replace(example, labels=example.labels | labels) for example in tagged), len(gold))


def evaluated(method: str, results: ExampleResults, limits: float | dict[str, float] = 0.0) -> Evaluation:
    """Suggest thresholds, then remove the entities whose score is below the given threshold."""
    _check_labels(results, limits)
    suggestions = suggest_thresholds(
        (example.gold, [(Span(e.start, e.end, e.label), e.score) for e in example.entities])
        for example in results.tagged
    )
    by_label = limits if isinstance(limits, dict) else dict.fromkeys(results.report.labels, limits)
    tagged = (
        replace(example, entities=tuple(e for e in example.entities if e.score >= by_label.get(e.label, 0.0)))
        for example in results.tagged
    )
    return Evaluation(method, replace(results, tagged=tuple(tagged)), suggestions if not limits else {})


def _check_labels(results: ExampleResults, limits: float | dict[str, float]) -> None:
    values = limits.values() if isinstance(limits, dict) else [limits]
    if not all(0 <= value <= 1 for value in values):
        raise ConfigError("--threshold must be between 0 and 1")
    labels = {label for example in results.tagged for label in example.labels}
    for label in limits if isinstance(limits, dict) else ():
        if label not in labels:
            raise ConfigError(f"--threshold: unknown label {label!r}{did_you_mean(label, labels)}")
