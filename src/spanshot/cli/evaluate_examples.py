"""``spanshot evaluate-examples``: measure how well examples work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from spanshot.evaluation.thresholds import WORTHWHILE, suggest_thresholds
from spanshot.examples.leave_one_out import (
    MOST_EXAMPLES,
    MOST_PARTS,
    ExampleResults,
    Learn,
    TextTagger,
    Watch,
    leave_one_out,
    tag_examples,
)
from spanshot.files import replacing
from spanshot.json_text import to_json
from spanshot.types import LearnOptions, Sentence, Span, SupportSet

if TYPE_CHECKING:
    from spanshot.model import Model

FINETUNED_PARTS = 5
"""Parts to hold out with --finetune, which fine-tunes once per part."""
Most = Annotated[
    int | None,
    typer.Option(
        "--most",
        metavar="N",
        min=0,
        help="Hold out at most N examples (0: all). Default: 1,000, or 200 for models that must learn again each time.",
    ),
]
LOWEST = 0.1
"""Lower thresholds are not suggested: new texts have more low scores than a few examples."""
METHOD = "Leave-one-out: each example tagged by a tagger that learned the others"

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
    labels: options.Labels = None,
    threshold: options.Thresholds = None,
    nested: options.Nested = False,
    finetune: options.Finetune = False,
    most: Most = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report with all errors as an HTML page.")
    ] = None,
    as_json: options.Json = False,
    kind: options.Format = None,
    device: options.Device = None,
) -> None:
    """Measure how well examples work, by leaving some out or on a test file.

    Without --on, each example is tagged by a tagger that has learned the others. Prints precision and recall by label
    with 95 % intervals, confusions, and score thresholds that would improve F1.
    """
    refuse_same_file("--html", html, [*files, *(on or [])])
    sentences = options.read_example_files(files, kind)
    gold = options.read_example_files(on, kind) if on else None
    opened = options.load_model_or_default(model, device)
    names = options.parse_labels(labels or [])
    limits = options.parse_thresholds(threshold or [])
    _check_range(limits or 0.0)
    with progress_bars() as count:

        def watch(done: int, total: int) -> None:
            count("evaluating", done, total)

        if gold is None:
            support = SupportSet.of(sentences, names)
            settings = LearnOptions(nested, limits, finetune)
            results = left_out(opened, support, settings, watch, most)
            method = METHOD
        else:
            learn = learner(opened, nested=nested, finetune=finetune)
            results = evaluate_on(learn, sentences, gold, names, watch)
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


def left_out(
    model: Model, support: SupportSet, settings: LearnOptions, watch: Watch | None = None, limit: int | None = None
) -> ExampleResults:
    """Tag each example with a tagger that learned the others."""
    from spanshot.learner import LinearLearner

    if isinstance(model.method, LinearLearner) and not settings.finetune:
        from spanshot.examples.held_out import MOST_HELD_OUT, HeldOut

        settings.check_labels(support.labels)
        held_out = HeldOut.of(model, support, settings)
        return held_out.results(watch, MOST_HELD_OUT if limit is None else limit)
    learn = learner(model, nested=settings.nested, finetune=settings.finetune)
    parts = FINETUNED_PARTS if settings.finetune else MOST_PARTS
    sample = MOST_EXAMPLES if limit is None else limit
    return leave_one_out(learn, support.sentences, watch, parts=parts, limit=sample)


def learner(model: Model, *, nested: bool, finetune: bool) -> Learn:
    """Return a function that learns examples. It applies no threshold, so that thresholds can be chosen later."""

    def learn(support: SupportSet) -> TextTagger:
        return model.learn(support, nested=nested, finetune=finetune)

    return learn


def evaluate_on(
    learn: Learn,
    sentences: Sequence[Sentence],
    gold: Sequence[Sentence],
    names: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> ExampleResults:
    """Learn the examples and tag the gold sentences. All gold labels count, even those without an example."""
    labels = {span.label for sentence in gold for span in sentence.spans}
    tagged = tag_examples(learn, sentences, list(enumerate(gold)), names)
    if watch:
        watch(1, 1)
    return ExampleResults(tuple(replace(example, labels=example.labels | labels) for example in tagged), len(gold))


def evaluated(method: str, results: ExampleResults, limits: float | dict[str, float] = 0.0) -> Evaluation:
    """Suggest thresholds, then remove the entities whose score is below the given threshold."""
    _check_labels(results, limits)
    suggestions = suggest_thresholds(
        (example.gold, [(Span(e.start, e.end, e.label), e.score) for e in example.of_any_score])
        for example in results.tagged
    )
    if not limits:  # compare with the thresholds that are used by default
        label_counts = results.report.labels
        suggestions = {
            label: replace(suggestion, f1_before=label_counts[label].f1 if label in label_counts else 0.0)
            for label, suggestion in suggestions.items()
        }
        suggestions = {
            label: suggestion
            for label, suggestion in suggestions.items()
            if suggestion.f1_after - suggestion.f1_before >= WORTHWHILE and suggestion.threshold >= LOWEST
        }
    by_label = limits if isinstance(limits, dict) else dict.fromkeys(results.report.labels, limits)
    tagged = (
        replace(example, entities=tuple(e for e in example.entities if e.score >= by_label.get(e.label, 0.0)))
        for example in results.tagged
    )
    return Evaluation(method, replace(results, tagged=tuple(tagged)), suggestions if not limits else {})


def _check_range(limits: float | dict[str, float]) -> None:
    values = limits.values() if isinstance(limits, dict) else [limits]
    if not all(0 <= value <= 1 for value in values):
        raise ConfigError("--threshold must be between 0 and 1")


def _check_labels(results: ExampleResults, limits: float | dict[str, float]) -> None:
    labels = {label for example in results.tagged for label in example.labels}
    for label in limits if isinstance(limits, dict) else ():
        if label not in labels:
            raise ConfigError(f"--threshold: unknown label {label!r}{did_you_mean(label, labels)}")
