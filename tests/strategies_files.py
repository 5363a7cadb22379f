"""Hypothesis strategies for damaged files: golden files with bytes changed, and records with values replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

from hypothesis import strategies as st

GOLDEN = Path(__file__).parent / "golden" / "examples"

# What breaks readers: pieces of every format, control characters, odd Unicode, odd numbers.
SCRAPS = (
    *(b"[", b"]", b"(", b")", b"](", b"{", b"}", b'"', b":", b",", b"\\", b"\\u0000", b"\\ud800", b"\\udc00\\ud83d"),
    *(b"\n", b"\r", b"\r\n", b"\t", b" ", b"\0", b"\x1c", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf"),
    *(b"\xff", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xf0\x9f", b"e\xcc\x81", b"\xe2\x80\x8d"),
    *(b"O", b"B-x", b"I-", b"S-x\n", b"-DOCSTART-", b"T1\tx 0 1\ta\n", b"0 1;2 3", b"R1\tx\n", b"#1\n"),
    *(b"-1", b"0", b"1e999", b"1.5", b"9" * 25, b"9" * 4301, b"NaN", b"Infinity", b"null", b"true", b"[]", b"{}"),
    *(b'"text":', b'"entities":', b'"label":', b'"start":', b'"spans": [', b'"data": {', b'"annotation_id": 1,'),
)


def mutated(seeds: list[bytes]) -> st.SearchStrategy[bytes]:
    """Seeds with a few changes: bytes overwritten, scraps put in, parts removed, repeated, moved or cut off."""
    return _seeded(lambda random: _mutate(random, random.choice(seeds)))


def _seeded(make: Callable[[Random], bytes]) -> st.SearchStrategy[bytes]:
    """Inputs made from a random number: less to shrink, but ten times as many a second."""
    return st.integers(0, 2**64 - 1).map(lambda number: make(Random(number)))


def _mutate(random: Random, data: bytes) -> bytes:
    for _ in range(random.randint(0, 5)):
        start = random.randint(0, len(data))
        end = min(start + random.randint(0, 40), len(data))
        kind = random.choice(["put", "put", "put", "remove", "repeat", "bytes", "move", "cut"])
        if kind == "put":
            data = data[:start] + random.choice(SCRAPS) + data[random.choice([start, end]) :]
        elif kind == "remove":
            data = data[:start] + data[end:]
        elif kind == "repeat":
            data = data[:start] + data[start:end] * random.randint(2, 60) + data[end:]
        elif kind == "bytes":
            data = data[:start] + random.randbytes(random.randint(0, 6)) + data[end:]
        elif kind == "move":
            rest = data[:start] + data[end:]
            at = random.randint(0, len(rest))
            data = rest[:at] + data[start:end] + rest[at:]
        else:
            data = data[:end]
    return data


scraps = st.lists(st.sampled_from(SCRAPS), max_size=25).map(b"".join)

_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([3, 7, -1, 10**30, "O", "x", "Oslo", "\ud800", "a\nb", ""]),
)
json_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def paths_in(value: object) -> list[list[object]]:
    """The path to everything within a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [[], *([key, *path] for key, child in inner for path in paths_in(child))]


def replaced(value, path, new):
    """A copy of a JSON value with another one at that path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@st.composite
def damaged(draw: st.DrawFn, records: list[object]) -> object:
    """A good record with anything in it replaced by anything."""
    record = draw(st.sampled_from(records))
    return replaced(record, draw(st.sampled_from(paths_in(record))), draw(json_values))


def damaged_files(records: list[object]) -> st.SearchStrategy[bytes]:
    """Files of records with values replaced, as a JSON list or one record a line; some with bytes changed as well."""

    def make(random: Random) -> bytes:
        values = []
        for _ in range(random.randint(1, 3)):
            value = random.choice(records)
            for _ in range(random.randint(0, 3)):
                value = replaced(value, random.choice(paths_in(value)), _random_value(random))
            values.append(value)
        lines = [
            json.dumps(value, ensure_ascii=random.random() < 0.9).encode("utf-8", "surrogatepass") for value in values
        ]
        data = b"\n".join(lines) if random.random() < 0.5 else b"[" + b", ".join(lines) + b"]"
        return _mutate(random, data) if random.random() < 0.2 else data

    return _seeded(make)


def _random_value(random: Random, depth: int = 0) -> object:
    kind = random.randint(0, 9)
    if kind < 2 and depth < 3:
        return [_random_value(random, depth + 1) for _ in range(random.randint(0, 4))]
    if kind < 4 and depth < 3:
        return {random.choice(_KEYS): _random_value(random, depth + 1) for _ in range(random.randint(0, 4))}
    if kind < 6:
        return random.randint(-3, 60)
    return random.choice(_ODD_VALUES)


_KEYS = ("text", "label", "labels", "start", "end", "entities", "spans", "data", "annotations", "result", "id", "a\nb")
_ODD_VALUES = (None, True, False, 1.5, 1e300, 10**30, -(10**4000), "", "O", "x", "Oslo", "\ud800", "a\nb", "accept")


def golden(*names: str) -> list[bytes]:
    """The contents of golden files."""
    return [(GOLDEN / name).read_bytes() for name in names]


def golden_records(*names: str) -> list[object]:
    """The records of golden files, in a list or one a line."""
    found = []
    for data in golden(*names):
        text = data.decode()
        found += json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    return found
