"""The cost of reading grows no faster than the size of a file. Steps are counted, not seconds."""

import contextlib
import importlib
import json
import pkgutil
import re
import re._constants as codes
import re._parser as parser
from itertools import pairwise

import pytest

import spanshot.formats
from spanshot.errors import SpanshotError
from spanshot.formats.char_spans import CharSpan
from spanshot.formats.dropped import DropReason
from spanshot.formats.examples import parse_examples, read_examples
from spanshot.formats.guess import guess_format
from spanshot.formats.inline import has_markup, parse_inline, write_inline
from spanshot.formats.json_values import Place
from spanshot.tags import outermost
from spanshot.types import Span
from steps import steps

SIZE = 150


def record(text, spans):
    return {"text": text, "entities": [{"start": s, "end": e, "label": "x", "text": text[s:e]} for s, e in spans]}


def read_file(tmp_path, name, content, format=None):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    return lambda: read_examples(path, format)


def brat(tmp_path, text, lines):
    (tmp_path / "doc.txt").write_text(text, encoding="utf-8", newline="")
    return read_file(tmp_path, "doc.ann", "".join(f"T{n}\t{line}\n" for n, line in enumerate(lines)))


# Each builds a call for a size; reading the double size must take about double the steps.
CASES = {
    "brackets": lambda tmp, n: lambda: guess_format("x", "[](" * n),
    "lines of brackets": lambda tmp, n: lambda: guess_format("x", "a [](\n" * n),
    "lines that begin with a brace": lambda tmp, n: lambda: guess_format("x", "{ [a](b)\n" * n),
    "tagged lines and brackets": lambda tmp, n: lambda: guess_format("x", "a B-x\n[[[[[\n" * n + "a B-x\n"),
    "inline spans": lambda tmp, n: lambda: parse_inline("[a](x) " * n),
    "inline spans within spans": lambda tmp, n: lambda: parse_inline("[" * n + "a" + "](x)" * n),
    "inline labels with brackets": lambda tmp, n: lambda: parse_inline("[a](" + "(" * n + ")" * n + ")"),
    "inline output": lambda tmp, n: lambda: write_inline("a " * n, [(0, 2 * i, "x") for i in range(1, n)]),
    "inline file": lambda tmp, n: read_file(tmp, "a.txt", "to [Oslo](city)\n" * n),
    "columns": lambda tmp, n: read_file(tmp, "a.txt", "a B-x\nb O\n\n" * n),
    "columns in lines of carriage returns": lambda tmp, n: read_file(tmp, "a.txt", "a B-x\rb O\r\r" * n),
    "brat spans in pieces": lambda tmp, n: brat(
        tmp, "😀 \r\n" * n + "a b\r\n" * n, [f"x {5 * i} {5 * i + 1};{5 * i + 2} {5 * i + 3}\ta b" for i in range(n)]
    ),
    "brat spans over lines": lambda tmp, n: brat(tmp, "a\n" * n, [f"x 0 {2 * i + 1}" for i in range(n)]),
    "brat fragments": lambda tmp, n: brat(tmp, "a " * n, ["x " + ";".join(f"{2 * i} {2 * i + 1}" for i in range(n))]),
    "brat spaces": lambda tmp, n: brat(tmp, "a" + " " * n + "b", [f"x 0 1;{n + 1} {n + 2}"] * n),
    "spans of one record": lambda tmp, n: (
        lambda: parse_examples(record("a😀 " * n, [(3 * i, 3 * i + 1) for i in range(n)]))
    ),
    "spans from the beginning": lambda tmp, n: (
        lambda: parse_examples(
            {"text": "a " * n, "entities": [{"start": 0, "end": 2 * i, "label": "x"} for i in range(1, n)]}
        )
    ),
    "spans that are left out": lambda tmp, n: (
        lambda: parse_examples({"text": "ab " * n, "entities": [{"start": 1, "end": 3 * n, "label": "x"}] * n})
    ),
    "a long text of many lines": lambda tmp, n: (
        lambda: parse_examples(record("a b c d e f g h\n" * n, [(16 * i, 16 * i + 1) for i in range(n)]))
    ),
    "records in lines": lambda tmp, n: read_file(tmp, "a.jsonl", f"{json.dumps(record('a b', [(0, 1)]))}\n" * n),
    "records in a list": lambda tmp, n: read_file(tmp, "a.json", json.dumps([record("a b", [(0, 1)])] * n)),
    "labels of one region": lambda tmp, n: (
        lambda: parse_examples(
            {
                "data": {"text": "a " * n},
                "annotations": [
                    {
                        "result": [
                            {
                                "type": "labels",
                                "value": {
                                    "start": 0,
                                    "end": 2 * n,
                                    "text": "a " * n,
                                    "labels": [f"x{i}" for i in range(n)],
                                },
                            }
                        ]
                    }
                ],
            }
        )
    ),
    "tokens of every span": lambda tmp, n: (
        lambda: parse_examples(
            {
                "text": "a " * n,
                "tokens": [{"text": "a"}] * n,
                "spans": [{"start": 0, "end": 2 * n, "label": "x", "token_start": 0, "token_end": n - 1}] * n,
                "answer": "accept",
            }
        )
    ),
    "a key of many in one object": lambda tmp, n: read_file(
        tmp, "a.jsonl", "{" + ", ".join(f'"{i}": 1' for i in range(n)) + ', "0": 1}'
    ),
    "outermost spans": lambda tmp, n: (
        lambda: outermost([Span(2 * i, 2 * i + 2, "x") for i in range(n)] + [Span(i, i + 1, "y") for i in range(n)])
    ),
}


def quietly(call):
    """The call, whose cost counts also if it ends with an error."""

    def run():
        with contextlib.suppress(SpanshotError):
            call()

    return run


@pytest.mark.parametrize("case", CASES)
def test_twice_the_size_takes_about_twice_the_steps(case, tmp_path):
    quietly(CASES[case](tmp_path, 4))()  # imports and caches
    small = steps(quietly(CASES[case](tmp_path, SIZE)))
    large = steps(quietly(CASES[case](tmp_path, 2 * SIZE)))
    assert small > 0
    assert large < 2.4 * small, f"{small} steps for {SIZE}, {large} for {2 * SIZE}"


class CountingText(str):
    """A string that counts the characters it is searched through for."""

    searched = 0

    def find(self, *arguments):
        self.searched += len(self)
        return super().find(*arguments)

    def rfind(self, *arguments):
        self.searched += len(self)
        return super().rfind(*arguments)


@pytest.mark.parametrize("text", ["[](" * 4000, "[" * 4000, "[](x" * 4000, "[a](b)" * 4000])
def test_a_line_is_searched_for_markup_at_most_three_times(text):
    counting = CountingText(text)
    has_markup(counting)
    assert 0 < counting.searched <= 3 * len(text)


PATTERNS = {
    f"{module.name}.{name}": value
    for module in pkgutil.iter_modules(spanshot.formats.__path__)
    for name, value in vars(importlib.import_module(f"spanshot.formats.{module.name}")).items()
    if isinstance(value, re.Pattern)
}


def unbounded(node):
    return node[0] in (codes.MAX_REPEAT, codes.MIN_REPEAT) and node[1][1] is codes.MAXREPEAT


def sequences(pattern):
    """Every sequence of nodes in a parsed pattern."""
    yield list(pattern)
    for _, argument in pattern:
        parts = argument if isinstance(argument, tuple | list) else [argument]
        for part in parts:
            if isinstance(part, parser.SubPattern):
                yield from sequences(part)
            elif isinstance(part, list):
                for inner in part:
                    if isinstance(inner, parser.SubPattern):
                        yield from sequences(inner)


def is_slow(pattern):
    """Whether a pattern may try many ways to match one text: two wildcards, or two repeats side by side."""
    found = list(sequences(parser.parse(pattern)))
    wild = sum(unbounded(node) and node[1][2][0][0] is codes.ANY for nodes in found for node in nodes)
    beside = any(unbounded(a) and unbounded(b) for nodes in found for a, b in pairwise(nodes))
    return wild > 1 or beside


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_of_the_readers_do_not_backtrack(name):
    assert not is_slow(PATTERNS[name].pattern)


@pytest.mark.parametrize("pattern", [r"\[.*\]\(.+\)", r"(?:[A-Za-z#][0-9]+\S*|\*)\t"])
def test_patterns_that_were_slow_are_recognised(pattern):
    assert is_slow(pattern)


def test_the_text_of_a_drop_is_cut_before_it_is_copied():
    class Text(str):
        def __getitem__(self, key):
            part = super().__getitem__(key)
            assert len(part) < 100
            return part

    span = CharSpan(0, 10_000, "x", Place("a"))
    assert str(span.drop(DropReason.INSIDE_WORD, Text("b" * 10_000))).endswith("b…' (x)")
