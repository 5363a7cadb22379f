"""Options that several commands share, and the tagger that they describe."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanshot.cli.console import note, progress_bars
from spanshot.errors import ConfigError
from spanshot.formats.examples import Examples, read_examples
from spanshot.types import Sentence

if TYPE_CHECKING:
    from spanshot.model import Model
    from spanshot.tagger import Tagger

log = logging.getLogger(__name__)

ExampleFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--examples",
        "-e",
        metavar="FILE",
        help="Labelled examples: lines such as [Apple](ORG) grew, JSON lines, CoNLL columns, or an export of "
        "Label Studio, doccano, Prodigy or brat. Can be repeated.",
    ),
]
ExampleArguments = Annotated[list[Path], typer.Argument(metavar="EXAMPLES", help="Files of labelled examples.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="Format of the examples. Default: detected from the content."),
]
ModelFolder = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "-m",
        metavar="FOLDER",
        help="Folder of a model that you trained or saved. Default: the model in the package.",
    ),
]
Thresholds = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        "-t",
        metavar="[LABEL=]SCORE",
        help="Minimum score (0 to 1) of an entity; LABEL=SCORE sets it for one label. Can be repeated.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="NAME[,NAME...]",
        help="Labels to find by name, without examples: drug,dose. LABEL=NAME gives a label a readable name or a "
        "description: 'PER=person,GOVLAW=governing law'. Can be repeated.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        "--precision",
        metavar="SHARE",
        help="Choose thresholds so that about this share (0 to 1) of the entities is right.",
    ),
]
Nested = Annotated[bool, typer.Option("--nested", help="Allow entities inside other entities.")]
Finetune = Annotated[
    bool, typer.Option("--finetune", help="Fine-tune a copy of the model on the examples first. Takes a few seconds.")
]
Device = Annotated[
    str | None, typer.Option("--device", metavar="DEVICE", help="Where to run the model: cpu, cuda, cuda:1, mps.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def read_example_files(files: Iterable[Path], kind: str | None) -> list[Sentence]:
    """Read the examples of all files and report dropped items on standard error."""
    sentences: list[Sentence] = []
    for examples in parse_example_files(files, kind):
        if examples.dropped:
            note(examples.dropped.summary())
        sentences += examples.sentences
    return sentences


def parse_example_files(files: Iterable[Path], kind: str | None) -> list[Examples]:
    """Read the examples of each file."""
    parsed = []
    for path in files:
        parsed.append(read_examples(path, kind))
        log.info("%s: %d examples (%s)", path, len(parsed[-1].sentences), parsed[-1].format)
    return parsed


def load_model_or_default(folder: Path | None, device: str | None) -> Model:
    """Load the model of a folder, or the one in the package."""
    from spanshot.model import embedded_model, load_model

    log.info("model: %s", folder or "the one in the package")
    return embedded_model(device) if folder is None else load_model(folder, device)


def parse_thresholds(values: Sequence[str]) -> float | dict[str, float] | None:
    """Parse ``0.5``, for all labels, or ``city=0.5``, for one.

    >>> parse_thresholds(["0.3"]), parse_thresholds(["city=0.5", "day=1"])
    (0.3, {'city': 0.5, 'day': 1.0})
    """
    by_label: dict[str, float] = {}
    for text in values:
        label, _, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise ConfigError(f"--threshold must be a number or LABEL=number; found {text!r}") from None
        if not label:
            if len(values) > 1:
                raise ConfigError("--threshold: give one number for all labels, or LABEL=number for each")
            return value
        by_label[label] = value
    return by_label or None


def parse_labels(values: Sequence[str]) -> dict[str, str]:
    """Parse ``drug,dose``, labels that name themselves, or ``PER=person``, a label with a readable name.

    >>> parse_labels(["drug, dose", "GOVLAW=governing law"])
    {'drug': '', 'dose': '', 'GOVLAW': 'governing law'}
    """
    names: dict[str, str] = {}
    for value in values:
        for part in value.split(","):
            label, _, name = (side.strip() for side in part.partition("="))
            if not label:
                raise ConfigError(f"--labels must be names with commas between them; found {value!r}")
            if names.get(label, name) != name:
                raise ConfigError(f"--labels: {label!r} has two names: {names[label]!r} and {name!r}")
            names[label] = name
    return names


def make_tagger(
    examples: Sequence[Sentence],
    folder: Path | None,
    *,
    labels: Mapping[str, str] | None = None,
    thresholds: Sequence[str] = (),
    precision: float | None = None,
    nested: bool = False,
    finetune: bool = False,
    device: str | None = None,
) -> Tagger:
    """Learn the examples or label names; without either, load the tagger in ``folder`` and apply the options."""
    if examples or (labels and not _is_tagger(folder)):
        with progress_bars(quiet=not finetune) as count:
            return load_model_or_default(folder, device).learn(
                examples,
                labels=labels or {},
                nested=nested,
                threshold=parse_thresholds(thresholds),
                precision=precision,
                finetune=finetune,
                progress=lambda done, total: count("fine-tuning", done, total),
            )
    from spanshot.model import load

    if folder is None:
        raise ConfigError(
            "no examples; use --examples FILE, --labels NAMES, or --model with a folder that `spanshot learn` wrote"
        )
    saved = load(folder, device)
    options = replace(saved.options, nested=nested or saved.options.nested, finetune=finetune or saved.options.finetune)
    if thresholds or precision is not None:
        options = replace(options, threshold=parse_thresholds(thresholds), precision=precision)
    if labels:
        saved = saved.add(labels=labels)
    return saved.with_options(options)


def _is_tagger(folder: Path | None) -> bool:
    """Return whether a folder contains a saved tagger."""
    from spanshot.manifest import Manifest

    return folder is not None and folder.is_dir() and Manifest.read(folder).kind == "tagger"
