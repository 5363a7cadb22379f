"""The commands for one's own text: tag, learn, check and evaluate-examples. Each parses and shows, no more."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanshot.formats.examples import Examples
    from spanshot.tagger import Tagger

app = typer.Typer()

ExampleFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--examples",
        "-e",
        help="Labelled examples: lines such as `[Apple](ORG) grew`, JSON lines, CoNLL columns, or an export of "
        "Label Studio, doccano, Prodigy or brat. May be given several times.",
    ),
]
Format = Annotated[str | None, typer.Option("--format", help="What the examples are, where it cannot be told.")]
Finetune = Annotated[
    bool, typer.Option("--finetune", help="Practise on the examples first, on a copy of the model: takes some seconds.")
]
ModelFolder = Annotated[
    Path | None,
    typer.Option(
        "--model", "-m", help="A model that you trained, or what `spanshot learn` wrote, in place of the package's own."
    ),
]


@app.command()
def tag(
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Text to tag.")] = None,
    examples: ExampleFiles = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--input", "-i", help="File of texts, one in a line, or JSON lines with a text; - is stdin."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the answer to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page to look at.")] = None,
    model: ModelFolder = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option("--threshold", "-t", help="Least score (0..1) of what is shown; LABEL=score for one label."),
    ] = None,
    nested: Annotated[bool, typer.Option("--nested", help="Entities may lie within others.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Take each file as one text, not line by line.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines also on a terminal.")] = False,
    markup: Annotated[
        bool, typer.Option("--markup", help="Answer in inline markup: correct it, and it is more examples.")
    ] = False,
    because: Annotated[bool, typer.Option("--because", help="JSON with the examples that made each decision.")] = False,
    finetune: Finetune = False,
    kind: Format = None,
    batch: Annotated[int, typer.Option(help="Texts that are read at once.", min=1)] = 32,
) -> None:
    """Find the entities that your examples mark in new text.

    Without a text or a file, standard input is read, line by line. The answer is coloured text on a terminal, and JSON
    lines elsewhere.
    """
    from spanshot.cli import display, highlights, tagging

    _one_of(json=as_json, markup=markup, html=html is not None)
    _one_of(because=because, markup=markup)
    _one_of(output=output is not None, html=html is not None)

    if not texts and not files and sys.stdin.isatty():
        raise typer.BadParameter('give a text ("..."), --input FILE, or pipe text in')
    read = tagging.examples_of(examples or [], kind)
    _tell_dropped(read)
    predictor = _learned(read, model, threshold or [], nested, finetune)
    given = tagging.texts_in(texts or [], files or [], whole)
    results = tagging.tagged(predictor, given, batch)
    on_terminal = sys.stdout.isatty() and not (output or html or as_json or markup)
    if not on_terminal and not (texts and not files):
        results = display.counted(display.console(stderr=True), results)
    shown = (highlights.Tagged(given.text, entities) for given, entities in results)
    if html:
        count = tagging.write_page(html, results, predictor.labels, f"spanshot: {', '.join(predictor.labels)}")
        print(f"{html}: {count} {'text' if count == 1 else 'texts'}", file=sys.stderr)
    elif markup:
        _write_lines(map(highlights.marked_up, shown), output)
    elif on_terminal:
        highlights.show_highlights(display.console(), shown, predictor.labels)
    else:
        _write_lines((tagging.json_line(*result, because) for result in results), output)


def _learned(read: list[Examples], model: Path | None, threshold: list[str], nested: bool, finetune: bool) -> Tagger:
    """What has learned the examples; practice, if asked for, shows how far it is."""
    from spanshot.cli import display, tagging

    with display.counting(display.console(stderr=True), quiet=not finetune) as count:
        return tagging.predictor_of(read, model, threshold, nested, finetune, partial(count, "practising"))


def _one_of(**asked: bool) -> None:
    """Refuse options that ask for different answers."""
    options = [f"--{option}" for option, is_asked in asked.items() if is_asked]
    if len(options) > 1:
        raise typer.BadParameter(f"{' and '.join(options)} ask for different answers; give one of them")


def _write_lines(lines: Iterator[str], output: Path | None) -> None:
    if output is not None:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        return
    try:
        for line in lines:
            print(line, flush=True)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell_dropped(read: list[Examples]) -> None:
    for own in read:
        if own.dropped:
            print(own.dropped.summary(), file=sys.stderr)


@app.command()
def learn(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    examples: ExampleFiles = None,
    model: ModelFolder = None,
    threshold: Annotated[list[str] | None, typer.Option("--threshold", "-t", help="As for tag.")] = None,
    nested: Annotated[bool, typer.Option("--nested", help="Entities may lie within others.")] = False,
    finetune: Finetune = False,
    kind: Format = None,
) -> None:
    """Learn examples once and keep it: `spanshot tag --model FOLDER` and `spanshot.load` then need no examples."""
    from spanshot.cli import tagging

    if not examples:
        raise typer.BadParameter("give examples with --examples FILE")
    read = tagging.examples_of(examples, kind)
    _tell_dropped(read)
    predictor = _learned(read, model, threshold or [], nested, finetune)
    predictor.save(output)
    print(f"{output}: {', '.join(predictor.labels)}, from {len(predictor.support.sentences)} examples")


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="EXAMPLES...", help="Files of labelled examples.")],
    model: ModelFolder = None,
    look_only: Annotated[bool, typer.Option("--look-only", help="Do without the model: no leaving out.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if anything is found.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    kind: Format = None,
) -> None:
    """Tell what is wrong or thin in a set of examples, before anything is learned from them.

    Duplicates, conflicts, labels with few examples, spans that may have been forgotten; and, by tagging each example
    with what the others teach, labels that the model confuses.
    """
    from spanshot.cli import checking, display

    with display.counting(display.console(stderr=True)) as progress:
        report = checking.check(files, kind, model, look_only, progress)
    if as_json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        checking.show_check(display.console(), report)
    if strict and report.findings:
        raise typer.Exit(1)


@app.command()
def evaluate_examples(
    files: Annotated[list[Path], typer.Argument(metavar="EXAMPLES...", help="Files of labelled examples.")],
    model: ModelFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    kind: Format = None,
) -> None:
    """Measure how well your examples serve: each is tagged by what is learned from the others."""
    from spanshot.cli import checking, display

    with display.counting(display.console(stderr=True)) as progress:
        found = checking.evaluate_examples(files, kind, model, progress)
    if as_json:
        print(json.dumps(checking.leave_one_out_document(found), indent=2, ensure_ascii=False))
    else:
        checking.show_leave_one_out(display.console(), found)
