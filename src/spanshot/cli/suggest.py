"""``spanshot suggest``: list the texts that are most worth annotating next."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spanshot.cli import options
from spanshot.cli.console import console, note, visible
from spanshot.cli.highlights import Tagged, inline_markup
from spanshot.cli.new_app import new_app
from spanshot.cli.texts import BadLine, Text, read_texts
from spanshot.errors import DataError
from spanshot.json_text import JsonValue, to_json
from spanshot.types import Entity

if TYPE_CHECKING:
    from spanshot.examples.suggest import Suggestion

_AT_ONCE = 1000

app = new_app()


@app.command()
def suggest(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help='Texts without annotations: one per line, or JSON lines with a field "text". - is standard input.',
        ),
    ],
    examples: options.ExampleFiles = None,
    labels: options.Labels = None,
    model: options.ModelFolder = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="Number of texts to list.")] = 10,
    markup: Annotated[
        bool,
        typer.Option("--markup", help="Print inline markup, which can be corrected and used as examples."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines on a terminal, too.")] = False,
    kind: options.Format = None,
    device: options.Device = None,
) -> None:
    """List the texts that are most worth annotating next.

    These are texts with entities that the model is unsure of, above all of labels with few examples, and that differ
    from one another. Texts without any suggestion come last. Texts that are among the examples are left out.
    """
    if markup and as_json:
        raise typer.BadParameter("--json and --markup cannot be combined")
    tagger = options.make_tagger(
        options.read_example_files(examples or [], kind),
        model,
        labels=options.parse_labels(labels or []),
        device=device,
    )
    texts = _read(files)
    suggestions = tagger.suggest([text.text for text in texts], count)
    if not suggestions:
        note("no text is left that is not among the examples")
    if markup:
        for suggestion in suggestions:
            print(inline_markup(Tagged(suggestion.text, list(suggestion.entities))))
    elif as_json or not sys.stdout.isatty():
        for suggestion in suggestions:
            print(to_json(_record(suggestion, texts[suggestion.position])))
    else:
        show(console(), suggestions, texts)


def _read(files: Sequence[Path]) -> list[Text]:
    for path in files:
        if str(path) != "-" and not path.is_file() and not path.is_fifo():
            raise DataError.at(path, None, "is a folder; name a file" if path.is_dir() else "no such file")
    texts: list[Text] = []
    for chunk in read_texts([], files, False, _AT_ONCE):
        for item in chunk:
            if isinstance(item, BadLine):
                note(f"{item}; skipped")
            elif item.text.strip():
                texts.append(item)
    return texts


def _record(suggestion: Suggestion, text: Text) -> dict[str, JsonValue]:
    doubt = suggestion.doubt
    return {
        "text": suggestion.text,
        "entities": [_entity(entity) for entity in suggestion.entities],
        "doubt": None if doubt is None else _entity(doubt),
        "place": text.place,
        **{name: value for name, value in text.fields.items() if name not in {"doubt", "place"}},
    }


def _entity(entity: Entity) -> dict[str, JsonValue]:
    return {
        "start": entity.start,
        "end": entity.end,
        "label": entity.label,
        "text": entity.text,
        "score": round(entity.score, 4),
    }


def show(out: Console, suggestions: Sequence[Suggestion], texts: Sequence[Text]) -> None:
    """Print each text, where it stands, and the question that its annotation answers."""
    for suggestion in suggestions:
        doubt = suggestion.doubt
        entity = next((e for e in suggestion.entities if doubt and (e.start, e.end) == (doubt.start, doubt.end)), None)
        question = "no suggestion"
        if doubt is not None:
            state = "found" if entity else "not found"
            question = f"is {doubt.text!r} {doubt.label}? (score {doubt.score:.2f}, {state})"
        out.print(visible(suggestion.text), markup=False, highlight=False, soft_wrap=True)
        place = visible(texts[suggestion.position].place)
        out.print(f"  {place}: {visible(question)}", style="dim", markup=False, highlight=False, soft_wrap=True)
