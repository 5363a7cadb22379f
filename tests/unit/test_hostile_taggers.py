"""Damaged and forged taggers and engine files: refused with one line that names the file, or without effect.

A forged file has a digest of its own, so that only the checks of its content stand between it and the user.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors import numpy as tensors

import spanshot
from spanshot.engine.graph_file import read_graph
from spanshot.engine.layout import ENGINE, NAMES, SPANS, TOKENIZER, WEIGHTS
from spanshot.errors import CheckpointError, ConfigError, SpanshotError
from spanshot.head_file import HEAD
from spanshot.learner import LinearLearner
from spanshot.manifest import MANIFEST, Manifest, StoredFile
from spanshot.saved_tagger import PackagedFiles
from spanshot.tagger_file import TAGGER

EXAMPLES = ["fly to [New York](city) on [Monday](day)", "a train to [Oslo](city) [tomorrow](day)"]
TEXT = "from Paris to Los Angeles on Friday, or to Rome"
FILES = PackagedFiles()()
Change = Callable[[dict[str, np.ndarray]], object]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tagger") / "saved"
    spanshot.learn(EXAMPLES).save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    shutil.copytree(saved, tmp_path / "saved")
    return tmp_path / "saved"


def forge(folder: Path, name: str, content: bytes) -> None:
    """Replace a file, and its digest in the manifest."""
    manifest = Manifest.read(folder)
    stored = manifest.files[name].file
    (folder / stored).write_bytes(content)
    Manifest(manifest.kind, {**manifest.files, name: StoredFile.of(stored, content)}, ()).write(folder)


def content(folder: Path, name: str) -> bytes:
    return (folder / Manifest.read(folder).files[name].file).read_bytes()


def refused(folder: Path, name: str) -> None:
    """Loading must give one line that names the file."""
    with pytest.raises(CheckpointError) as raised:
        spanshot.load(folder)
    error_message = str(raised.value)
    assert "\n" not in error_message
    assert len(error_message) < 1200
    assert str(folder) in error_message
    assert name in error_message


@pytest.mark.parametrize("name", [HEAD, TAGGER])
def test_flipped_bits_are_detected_and_their_file_is_named(folder, name):
    rng = random.Random(1)
    path = folder / Manifest.read(folder).files[name].file
    whole = path.read_bytes()
    for _ in range(20):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        refused(folder, path.name)


def test_flipped_bits_in_the_manifest_are_detected_or_have_no_effect(saved, folder):
    rng = random.Random(2)
    wanted = spanshot.load(saved)(TEXT)
    path = folder / MANIFEST
    whole = path.read_bytes()
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with contextlib.suppress(CheckpointError):
            assert spanshot.load(folder)(TEXT) == wanted


HEADS: dict[str, Change] = {
    "a value that is not a number": lambda head: head["thetas"].__setitem__((0, 3), np.nan),
    "an infinite prior": lambda head: head["prior.weights"].__setitem__((0, 0), np.inf),
    "values whose product is infinite": lambda head: head["thetas"].__imul__(1e300),
    "values whose sum is infinite": lambda head: head["prior.weights"].__setitem__(slice(None), 3e38),
    "infinite evidence": lambda head: head["annotated.coefficients"].__setitem__((0, 0), np.inf),
    "another type": lambda head: head.__setitem__("thetas", head["thetas"].astype(np.int8)),
    "another size": lambda head: head.__setitem__("thetas", head["thetas"][:, 1:].copy()),
    "another number of labels": lambda head: head.__setitem__("prior.bias", np.zeros(3, np.float32)),
    "a missing tensor": lambda head: head.pop("counts"),
    "a negative count": lambda head: head["counts"].__setitem__(0, -1),
    "no widths": lambda head: head.__setitem__("widths", np.zeros(0, np.int64)),
    "enormous widths": lambda head: head.__setitem__("widths", np.array([2**40])),
    "very many widths": lambda head: head.__setitem__("widths", np.arange(1, 5000)),
    "examples that do not exist": lambda head: head["annotated.sentence"].__setitem__(0, 7),
    "spans that do not exist": lambda head: head["annotated.row"].__setitem__(0, -3),
}


@pytest.mark.parametrize("change", HEADS.values(), ids=list(HEADS))
def test_a_forged_head_is_refused(folder, change):
    head = {name: array.copy() for name, array in tensors.load(content(folder, HEAD)).items()}
    change(head)
    forge(folder, HEAD, tensors.save(head))
    refused(folder, HEAD)


@pytest.mark.parametrize("damage", [b"", b"\xff" * 100, b"\x80\x02ctorch\n", (10**9).to_bytes(8, "little") + b"{}"])
def test_a_head_that_is_none_is_refused(folder, damage):
    forge(folder, HEAD, damage)
    refused(folder, HEAD)


TAGGERS: dict[str, Callable[[dict], object]] = {
    "labels twice": lambda record: record.update(labels=["city", "city"]),
    "no labels": lambda record: record.update(labels=[]),
    "a label that is none": lambda record: record.update(labels=["city", 3]),
    "another number of names": lambda record: record.update(names=["town"]),
    "cuts that do not exist": lambda record: record.update(cuts=["__import__"]),
    "spans outside of the sentence": lambda record: record["examples"][0]["spans"].append([5, 99, "city"]),
    "offsets outside of the text": lambda record: record["examples"][0]["offsets"].__setitem__(0, [0, 10**6]),
    "another text": lambda record: record["examples"][0].update(text="fly"),
    "a threshold above 1": lambda record: record["options"].update(threshold=7),
    "a window of any size": lambda record: record["options"].update(window=10**9),
    "a precision of 0": lambda record: record["options"].update(precision=0),
    "a model that is no digest": lambda record: record.update(model="../../model"),
    "no options": lambda record: record.pop("options"),
}


@pytest.mark.parametrize("change", TAGGERS.values(), ids=list(TAGGERS))
def test_a_forged_tagger_file_is_refused(folder, change):
    record = json.loads(content(folder, TAGGER))
    change(record)
    forge(folder, TAGGER, json.dumps(record).encode())
    refused(folder, TAGGER)


@pytest.mark.parametrize("damage", [b"", b"[]", b"\xff", b"[" * 100_000, b'{"labels": NaN}'])
def test_a_tagger_file_that_is_none_is_refused(folder, damage):
    forge(folder, TAGGER, damage)
    refused(folder, TAGGER)


# Graphs. Fields of protobuf messages, written by hand so that they can be wrong.


def varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def field(number: int, value: int | bytes, high: int = 0) -> bytes:
    """Return a field; ``high`` adds bits to its key that parsers with keys of 32 bits do not see."""
    kind = 0 if isinstance(value, int) else 2
    key = varint(number << 3 | kind | high << 32)
    return key + varint(value) if isinstance(value, int) else key + varint(len(value)) + value


def graph_of(model: bytes) -> tuple[int, int]:
    """Return where the graph of an exported model starts and ends."""
    at = 0
    while at < len(model):
        key, at = read_varint(model, at)
        size, start = read_varint(model, at)
        if key == 7 << 3 | 2:
            return start, start + size
        at = start + size if key & 7 == 2 else start
    raise AssertionError("no graph")


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (message[at] & 127) << shift
        shift += 7
        at += 1
        if message[at - 1] < 128:
            return value, at


def with_part(part: bytes) -> bytes:
    """Return the model's graph with one more part."""
    start, end = graph_of(FILES[NAMES])
    return field(7, FILES[NAMES][start:end] + part) + field(8, field(2, 20))


LOCATION = field(13, field(1, b"location") + field(2, b"/etc/passwd"))
FORGED_GRAPHS = {
    "an operation of another library": with_part(field(1, field(4, b"Add") + field(7, b"evil"))),
    "an operation that is not on the list": with_part(field(1, field(4, b"If"))),
    "an operation with a graph of its own": with_part(field(1, field(4, b"Add") + field(5, field(6, b"")))),
    "a list of graphs": with_part(field(1, field(4, b"Add") + field(5, field(11, b"")))),
    "weights of its own": with_part(field(5, field(1, 1000) + field(2, 1) + field(8, b"w") + field(9, b"\0" * 4000))),
    "a constant in another file": with_part(field(5, field(1, 4) + field(2, 1) + field(8, b"w") + LOCATION)),
    "a file, by a number above 32 bits": with_part(
        field(5, field(1, 4) + field(2, 1) + field(8, b"w") + field(14, 1 | 1 << 32))
    ),
    "a file, by a key above 32 bits": with_part(
        field(5, field(1, 4) + field(2, 1) + field(8, b"w") + field(14, 1, high=1))
    ),
    "a function": FILES[NAMES] + field(25, b""),
    "a function, by a key above 32 bits": FILES[NAMES] + field(25, b"", high=1),
    "a second graph": FILES[NAMES] + field(7, b""),
    "sparse weights": with_part(field(15, b"")),
    "very many operations": with_part(field(1, field(4, b"Add")) * 5000),
    "the end of another file": FILES[NAMES][:-7],
}


@pytest.mark.parametrize("graph", FORGED_GRAPHS.values(), ids=list(FORGED_GRAPHS))
def test_a_forged_graph_is_refused(graph):
    with pytest.raises(ConfigError, match="not a graph that spanshot has exported"):
        read_graph(graph)


def test_a_graph_written_by_hand_like_the_forged_ones_is_accepted():
    assert read_graph(with_part(b"")) == read_graph(with_part(b""))


@pytest.mark.parametrize("name", [ENGINE, SPANS, NAMES, WEIGHTS, TOKENIZER])
def test_an_engine_file_with_another_ones_content_is_named(name):
    other = SPANS if name != SPANS else TOKENIZER
    with pytest.raises(CheckpointError) as raised:
        LinearLearner.open({**FILES, name: FILES[other]}, threads=1)
    assert "\n" not in str(raised.value)
    assert name in str(raised.value) or name == NAMES  # a graph that works, but not as the model's test says


@pytest.mark.parametrize("name", [ENGINE, SPANS, NAMES, TOKENIZER])
def test_random_damage_to_an_engine_file_is_refused_or_without_effect(name):
    """Without digests: what a forger could reach by chance."""
    rng = random.Random(3)
    known = LinearLearner.open(FILES, threads=1).encoder.encode_names(["person"]).weights
    for _ in range(12):
        damaged = bytearray(FILES[name])
        for _ in range(rng.choice([1, 8])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with contextlib.suppress(SpanshotError):
            learner = LinearLearner.open({**FILES, name: bytes(damaged)}, threads=1)
            assert abs(learner.encoder.encode_names(["person"]).weights - known).max() < 0.1
