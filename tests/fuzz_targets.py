"""Fuzz targets: each takes any bytes and must end with a result or a ``SpanshotError`` of one line, nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from hypothesis import strategies as st

from spanshot.errors import SpanshotError
from spanshot.formats.examples import Examples, parse_examples, read_examples
from spanshot.formats.jsonl import record_of
from spanshot.types import Entity
from strategies_files import damaged_files, golden, golden_records, mutated, scraps

Result = TypeVar("Result")
SEPARATOR = b"\x1e\n"
"""Between the text and the annotations of a brat document, which are two files."""


@dataclass(frozen=True)
class Target:
    """A function to fuzz, and inputs that reach far into it."""

    run: Callable[[bytes], None]
    inputs: st.SearchStrategy[bytes]
    seeds: list[bytes]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="spanshot-fuzz-")


def _result(call: Callable[[], Result]) -> Result | None:
    """Return the result of a call; None for an error that a user may see, which must be one line."""
    try:
        return call()
    except SpanshotError as error:
        message = str(error)
    assert "\n" not in message, message
    return None


def _checked(read: Callable[[], Examples]) -> None:
    """Read examples; what is read must be written back as it was."""
    examples = _result(read)
    if examples is None:
        return
    assert not any("\n" in str(omission) for omission in examples.dropped.omissions)
    texts = [sentence for sentence in examples.sentences if sentence.text]
    if texts:
        again = parse_examples([record_of(sentence) for sentence in texts], "jsonl")
        assert again.sentences == tuple(texts)
        assert [sentence.text for sentence in again.sentences] == [sentence.text for sentence in texts]


def reader(format: str | None) -> Callable[[bytes], None]:
    """Read a file in a format, or guess the format."""

    def run(data: bytes) -> None:
        path = Path(_folder().name) / "data.dat"
        path.write_bytes(data)
        _checked(lambda: read_examples(path, format))

    return run


def brat(data: bytes) -> None:
    """Read a brat document from its two files."""
    text, _, annotations = data.partition(SEPARATOR)
    path = Path(_folder().name) / "doc.ann"
    path.with_suffix(".txt").write_bytes(text)
    path.write_bytes(annotations)
    _checked(lambda: read_examples(path))


@cache
def _tagger() -> Callable[[str], list[Entity]]:
    from spanshot import learn  # the readers do without a model

    return learn(["[Zoë Lind](person) flew from [Oslo](city).", "[Ann](person) is in [São Paulo](city)."])


def tagger(data: bytes) -> None:
    """Tag a short text; bytes that are not UTF-8 become half surrogate pairs."""
    text = data[:400].decode("utf-8", "surrogateescape")
    tagger = _tagger()
    for entity in _result(lambda: tagger(text)) or ():
        assert text[entity.start : entity.end] == entity.text
        assert 0 <= entity.score <= 1


def _json(format: str, *names: str) -> Target:
    seeds = golden(*names)
    return Target(reader(format), damaged_files(golden_records(*names)) | mutated(seeds) | scraps, seeds)


def _lines(format: str | None, *names: str) -> Target:
    seeds = golden(*names)
    return Target(reader(format), mutated(seeds) | scraps, seeds)


_EVERY = ("inline.txt", "columns.conll", "spans.jsonl", "doccano.jsonl", "prodigy.jsonl", "label-studio-min.json")
_UNIX = SEPARATOR.join(golden("brat/trips.txt", "brat/trips.ann"))
_BRAT = [_UNIX, _UNIX.replace(b"\n", b"\r\n").replace(b"\x1e\r\n", SEPARATOR)]
_TEXTS = golden("brat/trips.txt", "inline.txt")

TARGETS = {
    "inline": _lines("inline", "inline.txt"),
    "columns": _lines("conll", "columns.conll"),
    "jsonl": _json("jsonl", "spans.jsonl", "spans.json"),
    "doccano": _json("doccano", "doccano.jsonl", "doccano-relations.jsonl"),
    "prodigy": _json("prodigy", "prodigy.jsonl"),
    "label-studio": _json("label-studio", "label-studio.json", "label-studio-min.json"),
    "brat": Target(brat, mutated(_BRAT), _BRAT),
    "guess": _lines(None, *_EVERY),
    "tagger": Target(
        tagger,
        st.one_of(
            mutated(_TEXTS),
            scraps,
            st.binary(max_size=80),
            st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass")),
        ),
        _TEXTS,
    ),
}
