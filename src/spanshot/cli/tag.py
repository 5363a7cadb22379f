"""``spanshot tag``: find the entities of a few labelled examples in new text."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanshot.allocator import steady
from spanshot.cli import options
from spanshot.cli.console import console, counted, note
from spanshot.cli.highlights import Tagged, inline_markup, page, show_highlights
from spanshot.cli.new_app import new_app
from spanshot.cli.output import (
    PartialFile,
    Progress,
    Results,
    fingerprint,
    open_results,
    refuse_same_file,
    refuse_stdout_as_input,
)
from spanshot.cli.tag_table import TableJob, refuse_other_inputs
from spanshot.cli.texts import BadLine, Text, read_texts
from spanshot.errors import ConfigError, DataError
from spanshot.files import replacing
from spanshot.formats.documents import Document
from spanshot.formats.dropped import DropLog
from spanshot.formats.guess import FORMATS, find_format
from spanshot.formats.json_values import JsonObject
from spanshot.formats.table_files import is_table_file
from spanshot.formats.table_files import plain as copied
from spanshot.formats.writing import FileFormat, Renderer, TextFormat, output_format, write_documents
from spanshot.json_text import JsonValue, to_json
from spanshot.types import Entity

if TYPE_CHECKING:
    from spanshot.tagger import Tagger

SKIPPED = 1
"""Exit code if lines were skipped."""
_CHUNKS = 8
"""Batches read at once from a file: texts of similar length are tagged together."""

app = new_app()


@app.command()
def tag(
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Text to tag.")] = None,
    examples: options.ExampleFiles = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help='Read texts from this file: one per line, JSON lines with a field "text", or a table (.parquet, '
            ".arrow, .csv, .tsv). - is standard input. Can be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the results to this file. It is replaced once all of them are written. A table (.parquet, "
            ".arrow, .csv, .tsv) has all columns of the input and the entities.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML page with highlighted entities.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help=f"Write another format than JSON lines: {', '.join(FORMATS)}."),
    ] = None,
    scheme: Annotated[str, typer.Option(metavar="SCHEME", help="Tags of the format conll: io, bio or bioes.")] = "bio",
    column: Annotated[str, typer.Option("--column", metavar="NAME", help="Column of a table with the texts.")] = "text",
    model: options.ModelFolder = None,
    labels: options.Labels = None,
    threshold: options.Thresholds = None,
    precision: options.Precision = None,
    nested: options.Nested = False,
    finetune: options.Finetune = False,
    whole: Annotated[bool, typer.Option("--whole", help="Tag each file as one text instead of line by line.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines on a terminal, too.")] = False,
    markup: Annotated[
        bool, typer.Option("--markup", help="Print inline markup, which can be corrected and used as examples.")
    ] = False,
    because: Annotated[
        bool, typer.Option("--because", help="Add to each entity the examples that led to it (JSON only).")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an interrupted job that had the same options. Finished inputs are skipped if they have not "
            "changed. Partial results are in .NAME.spanshot-partial next to the output.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first line that cannot be read, with exit code 2.")
    ] = False,
    kind: options.Format = None,
    batch: Annotated[int, typer.Option(metavar="N", help="Number of texts to tag at once.", min=1)] = 32,
    device: options.Device = None,
) -> None:
    """Find entities in text, given a few labelled examples or label names.

    Reads standard input, line by line, if there is no TEXT and no --input. Prints highlighted text on a terminal and
    JSON lines elsewhere.

    Lines that cannot be read (bad JSON, no "text" field, invalid UTF-8) are reported on standard error and skipped;
    the exit code is then 1.
    """
    texts, files, examples = texts or [], files or [], examples or []
    _exclusive(json=as_json, markup=markup, html=html is not None, to=to is not None)
    _exclusive(because=because, markup=markup, to=to is not None)
    _exclusive(output=output is not None, html=html is not None)
    name = find_format(to) if to else None
    if name is None and output is not None and is_table_file(output):
        name = "table"
    table = refuse_other_inputs(output, files, texts) if name == "table" and output is not None else None
    kind_of_output = output_format(name, scheme) if name and name != "jsonl" and not table else None
    if isinstance(kind_of_output, FileFormat):
        if output is None:
            raise typer.BadParameter(f"--to {name} writes files; use it with --output")
        if resume:
            raise typer.BadParameter(f"--resume cannot continue the format {name}")
    if resume and output is None:
        raise typer.BadParameter("--resume needs --output FILE")
    if not texts and not files and sys.stdin.isatty():
        raise typer.BadParameter('no text; give one ("..."), use --input FILE, or pipe text in')
    inputs = files if texts or files else [Path("-")]
    for option, path in (("--output", output), ("--html", html)):
        refuse_same_file(option, path, [*inputs, *examples])
    if output is None and html is None:
        refuse_stdout_as_input(inputs)

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
    for path in files:
        if str(path) != "-" and not path.is_file() and not path.is_fifo():
            raise DataError.at(path, None, "is a folder; name a file" if path.is_dir() else "no such file")
    job = Job(tagger, texts, files, whole=whole, batch=batch, strict=strict, column=column)
    on_terminal = sys.stdout.isatty() and not (output or html or as_json or markup or to)
    quiet = on_terminal or not files
    if html:
        _write_page(job, html, quiet=quiet)
    elif on_terminal:
        show_highlights(console(), (Tagged(text.text, entities) for text, entities in job.run()), tagger.labels)
    elif isinstance(kind_of_output, FileFormat) and output is not None and name is not None:
        _write_file(job, output, name, quiet=quiet)
    else:
        described = [threshold, nested, finetune, whole, markup, because, kind, model and model.resolve()]
        described += [name, scheme, column, labels, str(precision)]
        job_digest = fingerprint(described, [*examples, *([model] if model else [])]) if output else ""
        if table is not None and output is not None:
            TableJob(tagger, table, column, because).run(output, job_digest, resume=resume)
        else:
            render = _renderer(kind_of_output, markup=markup, because=because)
            _write_lines(job, open_results(output, job_digest, resume=resume), render, quiet=quiet)
    if job.skipped:
        note(f"skipped {job.skipped} {'line' if job.skipped == 1 else 'lines'} that could not be read")
        raise typer.Exit(SKIPPED)


@dataclass
class Job:
    """Tags texts in order and counts skipped lines."""

    tagger: Tagger
    texts: Sequence[str]
    files: Sequence[Path]
    whole: bool = False
    batch: int = 32
    strict: bool = False
    column: str = "text"
    skipped: int = 0

    def run(self, results: Results | None = None, done: Progress | None = None) -> Iterator[tuple[Text, list[Entity]]]:
        """Yield each text with its entities, as soon as it is tagged. Skip the inputs that were done before.

        After each chunk, ``results`` records how far the job is.
        """
        return steady(self._run(results, done))

    def _run(self, results: Results | None, done: Progress | None) -> Iterator[tuple[Text, list[Entity]]]:
        done = done or Progress()
        inputs, digest = 0, hashlib.sha256()
        for chunk in read_texts(self.texts, self.files, self.whole, _CHUNKS * self.batch, self.column):
            already = min(len(chunk), max(0, done.inputs - inputs))
            for item in chunk[:already]:
                digest.update(item.raw + b"\n")
                self.skipped += isinstance(item, BadLine)
            inputs += already
            if inputs == done.inputs and already and digest.hexdigest() != done.digest:
                raise ConfigError("cannot resume: the input has changed since the interrupted job; leave out --resume")
            fresh = chunk[already:]
            yield from self._tag(fresh)
            for item in fresh:
                digest.update(item.raw + b"\n")
            inputs += len(fresh)
            if results and fresh:
                results.save(inputs, digest.hexdigest())
        if inputs < done.inputs:
            raise ConfigError(
                f"cannot resume: the input has {inputs} texts, but {done.inputs} were done before; leave out --resume"
            )

    def _tag(self, items: Sequence[Text | BadLine]) -> Iterator[tuple[Text, list[Entity]]]:
        readable = (item.text for item in items if isinstance(item, Text))
        entities = self.tagger.pipe(readable, self.batch)
        for item in items:
            if isinstance(item, Text):
                yield item, next(entities)
            else:
                self.skip(item)

    def skip(self, line: BadLine) -> None:
        """Report a line and count it; raise an error instead if the job is strict."""
        if self.strict:
            raise DataError(str(line))
        note(f"{line}; skipped")
        self.skipped += 1


def _exclusive(**options: bool) -> None:
    """Reject options that exclude each other."""
    chosen = [f"--{option}" for option, is_set in options.items() if is_set]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} cannot be combined")


class _Lines:
    """Renders results as lines of JSON or of inline markup."""

    def __init__(self, *, markup: bool, because: bool) -> None:
        self._markup = markup
        self._because = because

    def part(self, text: Text, entities: Sequence[Entity]) -> str:
        """Return the line of a text."""
        if self._markup:
            return f"{inline_markup(Tagged(text.text, entities))}\n"
        return f"{json_line(text, entities, self._because)}\n"

    def end(self) -> str:
        """Return the end of the output."""
        return ""


class _Formatted:
    """Renders results in another format and counts the items that it cannot express."""

    def __init__(self, format: TextFormat) -> None:
        self._renderer = Renderer(format, DropLog())
        self.empty = True

    def part(self, text: Text, entities: Sequence[Entity]) -> str:
        """Return the part of a text, with the head of the file or a separator before it."""
        fields: JsonObject = {name: copied(value) for name, value in text.fields.items()}
        part = self._renderer.part(Document.tagged(text.text, entities, fields), text.place, first=self.empty)
        self.empty = False
        return part

    def end(self) -> str:
        """Return the end of the output and report dropped items."""
        if dropped := self._renderer.log.dropped():
            note(dropped.summary())
        return self._renderer.end(empty=self.empty)


def _renderer(format: TextFormat | FileFormat | None, *, markup: bool, because: bool) -> _Lines | _Formatted:
    return _Formatted(format) if isinstance(format, TextFormat) else _Lines(markup=markup, because=because)


def _write_lines(job: Job, results: Results, render: _Lines | _Formatted, *, quiet: bool) -> None:
    partial = results if isinstance(results, PartialFile) else None
    if partial and partial.discarded:
        note(f"discarded {partial.discarded:,} results of an interrupted job (--resume would have continued it)")
    if partial and isinstance(render, _Formatted):
        render.empty = not partial.done.bytes
    try:
        for text, entities in counted(job.run(results, partial.done if partial else None), quiet=quiet):
            try:
                part = render.part(text, entities)
            except (RecursionError, ValueError):  # fields of the input that cannot be written again
                job.skip(BadLine(text.place, "its other fields are nested too deeply"))
            except DataError as error:
                job.skip(BadLine(text.place, str(error).removeprefix(f"{text.place} ")))
            else:
                results.add(part)
        if end := render.end():
            results.add(end)
        results.finish()
    except BaseException:
        if partial and (saved := partial.stop()):
            note(f"kept the results of {saved:,} texts; continue with --resume")
        raise


def _write_file(job: Job, path: Path, format: str, *, quiet: bool) -> None:
    """Write a format whose files are written as a whole."""
    documents = (
        Document.tagged(text.text, entities, {name: copied(value) for name, value in text.fields.items()})
        for text, entities in counted(job.run(), quiet=quiet)
    )
    if dropped := write_documents(path, documents, format):
        note(dropped.summary())


def json_line(text: Text, entities: Sequence[Entity], because: bool) -> str:
    """Return a result as one line of JSON: the text, its entities, and the other fields of its input line."""
    records: list[JsonValue] = []
    for entity in entities:
        record: dict[str, JsonValue] = {
            "start": entity.start,
            "end": entity.end,
            "label": entity.label,
            "text": entity.text,
            "score": round(entity.score, 4),
        }
        if because:
            record["because"] = [
                {
                    "kind": reason.kind,
                    "text": reason.text,
                    "example": reason.example,
                    "weight": round(reason.weight, 4),
                }
                for reason in entity.because
            ]
        records.append(record)
    return to_json({"text": text.text, "entities": records, **text.fields})


def _write_page(job: Job, path: Path, *, quiet: bool) -> None:
    count = 0

    def documents() -> Iterator[Tagged]:
        nonlocal count
        for text, entities in counted(job.run(), quiet=quiet):
            count += 1
            yield Tagged(text.text, entities)

    labels = job.tagger.labels
    with replacing(path) as file:
        file.writelines(page(documents(), labels, f"spanshot: {', '.join(labels)}"))
    note(f"{path}: {count:,} {'text' if count == 1 else 'texts'}")
