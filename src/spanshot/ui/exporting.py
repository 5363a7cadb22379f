"""Export a project: files of every format that can be read, a saved tagger, and the commands that do the same."""

from __future__ import annotations

import io
import json
import shlex
import tempfile
import zipfile
from pathlib import Path

from spanshot.errors import DataError
from spanshot.formats.documents import Document
from spanshot.formats.project import SUFFIX
from spanshot.formats.writing import write_documents
from spanshot.ui.learning import document_of
from spanshot.ui.state import State

KINDS = {
    "jsonl": ("jsonl", ".jsonl"),
    "inline": ("inline", ".txt"),
    "conll": ("conll", ".conll"),
    "label-studio": ("label-studio", ".json"),
    "doccano": ("doccano", ".jsonl"),
    "prodigy": ("prodigy", ".jsonl"),
    "brat": ("brat", ".zip"),
    "spacy": ("spacy", ".spacy"),
    "csv": ("table", ".csv"),
    "parquet": ("table", ".parquet"),
}
"""The formats by the names that the page uses: the format, and how its files end."""


def documents_of(state: State, *, whole: bool = False) -> list[Document]:
    """Return the annotated texts, or all of them if ``whole``."""
    labels = frozenset(state.labels)
    return [document_of(text, all_labels=labels) for text in state.texts.values() if whole or text.touched]


def export(documents: list[Document], kind: str) -> tuple[bytes, str, str]:
    """Return the content of a file, how its name ends, and a note on what the format cannot express."""
    if kind not in KINDS:
        raise DataError(f"unknown format {kind[:40]!r}; choose one of {', '.join(KINDS)}")
    if not documents:
        raise DataError("nothing to export yet; mark a span, or review a text")
    name, suffix = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("texts" if kind == "brat" else f"export{suffix}")
        dropped = write_documents(path, documents, name)
        note = "; ".join(dropped.summary().splitlines()) if dropped else ""
        if kind != "brat":
            return path.read_bytes(), suffix, note.replace(str(path), "the file")
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
            for file in sorted(path.iterdir()):
                target.write(file, file.name)
        return archive.getvalue(), suffix, note.replace(str(path), "the folder")


def commands(state: State, path: Path) -> dict[str, str]:
    """Return Python and command lines that learn the project."""
    limits = state.thresholds()
    names = {label: name for label, name in state.label_names().items() if name}
    options = [f"--threshold {shlex.quote(f'{label}={limit}')}" for label, limit in limits.items()]
    options += [f"--labels {shlex.quote(f'{label}={name}')}" for label, name in names.items()]
    options += ["--nested"] if state.nested else []
    arguments = [json.dumps(str(path), ensure_ascii=False)]
    arguments += [f"labels={names!r}"] if names else []
    arguments += [f"threshold={limits!r}"] if limits else []
    arguments += ["nested=True"] if state.nested else []
    stem = path.name.removesuffix(SUFFIX) or "project"
    folder = shlex.quote(f"{stem}-tagger")
    source = shlex.quote(str(path))
    learn = " ".join(["spanshot learn", "--examples", source, *options, "--output", folder])
    return {
        "shell": f"{learn}\nspanshot tag --model {folder} --input FILE",
        "python": f'import spanshot\n\ntagger = spanshot.learn({", ".join(arguments)})\nprint(tagger("…"))',
    }
