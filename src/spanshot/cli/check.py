"""``spanshot check``: check examples for mistakes and weak labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from spanshot.cli import options
from spanshot.cli.console import console, progress_bars, visible
from spanshot.cli.evaluate_examples import METHOD, Most, evaluated, left_out
from spanshot.cli.example_results import Evaluation, show_evaluation
from spanshot.cli.new_app import new_app
from spanshot.errors import EpisodeError
from spanshot.examples.leave_one_out import Watch
from spanshot.examples.lint import Finding, findings, ordered
from spanshot.examples.weak_labels import weak_labels
from spanshot.json_text import JsonValue, to_json
from spanshot.types import LearnOptions, Sentence, SupportSet

EXIT_PROBLEMS = 1
"""Exit code if there are findings, with --strict."""

app = new_app()


@app.command()
def check(
    files: options.ExampleArguments,
    model: options.ModelFolder = None,
    labels: options.Labels = None,
    nested: options.Nested = False,
    finetune: options.Finetune = False,
    no_model: Annotated[
        bool,
        typer.Option(
            "--no-model", help="Skip leave-one-out, which needs the model. Weak labels are then not reported."
        ),
    ] = False,
    most: Most = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if there are findings.")] = False,
    as_json: options.Json = False,
    kind: options.Format = None,
    device: options.Device = None,
) -> None:
    """Check examples for mistakes and weak labels.

    Finds duplicates, conflicting labels, mentions that are marked elsewhere but not here, and labels with too few
    examples. Then tags each example with a tagger that learned the others, and reports the precision and recall to
    expect of each label, with 95 % intervals, the confusions of weak labels, and the examples to add.
    """
    with progress_bars() as count:

        def leave_out(sentences: Sequence[Sentence], watch: Watch) -> Evaluation:
            support = SupportSet.of(sentences, options.parse_labels(labels or []))
            settings = LearnOptions(nested, finetune=finetune)
            opened = options.load_model_or_default(model, device)
            return evaluated(METHOD, left_out(opened, support, settings, watch, most))

        examples = options.parse_example_files(files, kind)
        sentences = [sentence for source in examples for sentence in source.sentences]
        dropped = tuple(line for source in examples for line in source.dropped.summary().splitlines())
        evaluation = None
        if not no_model:
            try:
                evaluation = leave_out(sentences, lambda done, total: count("leave-one-out", done, total))
            except EpisodeError:
                evaluation = None  # too few examples to leave one out; the findings report it
    weak = weak_labels(evaluation.results.report) if evaluation else []
    result = Check(tuple(sentences), dropped, tuple(ordered([*findings(sentences), *weak])), evaluation)
    if as_json:
        print(to_json(result.to_dict(), indent=2))
    else:
        show_check(console(), result)
    if strict and result.findings:
        raise typer.Exit(EXIT_PROBLEMS)


@dataclass(frozen=True)
class Check:
    """The result of a check."""

    sentences: tuple[Sentence, ...]
    dropped: tuple[str, ...]
    findings: tuple[Finding, ...]
    evaluation: Evaluation | None
    """None if it was skipped or there are too few examples."""

    @property
    def labels(self) -> dict[str, tuple[int, int]]:
        """Return for each label the number of its spans and of the examples with it."""
        spans = Counter(span.label for sentence in self.sentences for span in sentence.spans)
        examples = Counter(label for sentence in self.sentences for label in {span.label for span in sentence.spans})
        return {label: (spans[label], examples[label]) for label in sorted(spans)}

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything for JSON."""
        return {
            "examples": len(self.sentences),
            "labels": {label: {"spans": spans, "examples": count} for label, (spans, count) in self.labels.items()},
            "dropped": list(self.dropped),
            "findings": [finding.to_dict() for finding in self.findings],
            "leave_one_out": self.evaluation.to_dict() if self.evaluation else None,
        }


def show_check(out: Console, result: Check) -> None:
    """Print labels, findings and leave-one-out results."""
    out.print(f"{len(result.sentences)} examples", style="bold")
    table = Table(box=None, pad_edge=False)
    for column in ("label", "spans", "examples"):
        table.add_column(column, justify="left" if column == "label" else "right", overflow="fold")
    for label, (spans, examples) in result.labels.items():
        table.add_row(visible(label), str(spans), str(examples))
    out.print(table, markup=False)
    if result.dropped:
        out.print("\nNot used", style="bold")
    for line in result.dropped:
        out.print(f"  {line}", markup=False, soft_wrap=True)
    if result.findings:
        out.print("\nFindings", style="bold")
    for finding in result.findings:
        numbers = ", ".join(map(str, finding.examples))
        where = f" (example{'s' if len(finding.examples) > 1 else ''} {numbers})" if numbers else ""
        out.print(f"  {finding.message}{where}", markup=False, soft_wrap=True)
    if not result.findings and not result.dropped:
        out.print("\nNo problems found.")
    if result.evaluation:
        out.print()
        show_evaluation(out, result.evaluation)
