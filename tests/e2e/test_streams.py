"""Streams: bad lines are skipped and counted, slow input is answered at once, and jobs end cleanly."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys

import pytest

BAD_LINES = [
    ('{"text": "\\ud800 lone"}', "lone surrogate U+D800"),
    ("{bad json", "malformed JSON"),
    ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    ('{"text": "x", "n": ' + "9" * 5_000 + "}", "malformed JSON"),
    ('{"text": "x", "n": NaN}', "NaN is not a JSON value"),
    ('{"no": "text"}', "field 'text' is missing"),
    ('{"text": 3}', "field 'text' must be a string"),
    ('["text"]', "expected a JSON object"),
]


@pytest.fixture
def stream(tmp_path):
    """A file with a good line before and after each bad one."""
    path = tmp_path / "in.jsonl"
    lines = ['{"text": "first"}']
    for number, (line, _) in enumerate(BAD_LINES):
        lines += [line, f'{{"text": "good {number}"}}']
    path.write_bytes("\n".join(lines).encode() + b'\n{"text": "\xff"}\n{"text": "last"}\n')
    return path


def test_bad_lines_are_reported_with_their_numbers_and_skipped(spanshot, model, examples, stream):
    result = spanshot("tag", "-e", examples, "-m", model, "-i", stream)
    assert result.code == 1
    good = ["first", *(f"good {number}" for number in range(len(BAD_LINES))), "last"]
    assert [json.loads(line)["text"] for line in result.out.splitlines()] == good
    *reports, summary = result.err.splitlines()
    assert summary == f"spanshot: skipped {len(BAD_LINES) + 1} lines that could not be read"
    for number, ((_, problem), report) in enumerate(zip(BAD_LINES, reports, strict=False)):
        assert report.startswith(f"spanshot: {stream}:{2 * number + 2}: ")
        assert problem in report
        assert report.endswith("; skipped")
    assert "not UTF-8" in reports[-1]


@pytest.mark.parametrize(("line", "problem"), BAD_LINES)
def test_a_strict_job_stops_at_the_first_bad_line(spanshot, model, examples, tmp_path, line, problem):
    path = tmp_path / "in.jsonl"
    path.write_text(f'{{"text": "fine"}}\n{line}\n', encoding="utf-8")
    result = spanshot("tag", "-e", examples, "-m", model, "-i", path, "--strict", "-o", tmp_path / "out.jsonl")
    assert result.code == 2
    assert result.err.startswith(f"spanshot: error: {path}:2: ")
    assert problem in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_lines_may_end_in_any_way(spanshot, model, examples, tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes("one\rtwo\r\nthree\n\nfour\u2028still four".encode())
    records = [json.loads(line) for line in spanshot("tag", "-e", examples, "-m", model, "-i", path).out.splitlines()]
    assert [record["text"] for record in records] == ["one", "two", "three", "four\u2028still four"]


def test_an_argument_that_is_not_text_is_skipped_too(spanshot, model, examples):
    result = spanshot("tag", "-e", examples, "-m", model, "fine", "b\udcffad")
    assert result.code == 1
    assert "text 2: the text is not valid Unicode" in result.err


def test_json_output_is_valid_whatever_the_text(spanshot, model, examples, tmp_path, monkeypatch):
    text = "to Oslo \x1b]52;c;aGk=\x07 \x9b2J \u2028 \u2029 \u202e \x7f\x00 end"
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"text": text, "id": "\u2028\x9b\ud800"}) + "\n"))
    out = spanshot("tag", "-e", examples, "-m", model, "--because").out
    assert out.count("\n") == 1
    assert not set(out[:-1]) & {*map(chr, range(32)), *map(chr, range(127, 160)), "\u2028", "\u2029", "\u202e"}
    record = json.loads(out)
    assert record["text"] == text
    assert record["id"] == "\u2028\x9b\ud800"


def start(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "spanshot", *map(str, arguments)]
    if sys.platform != "win32":  # a background job of a shell ignores SIGINT, and so do its children
        options["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **options
    )


def test_a_slow_stream_is_answered_line_by_line_and_ends_cleanly(model, examples):
    running = start("tag", "-e", examples, "-m", model)
    try:
        for number in range(3):  # each answer arrives before the next line is sent
            running.stdin.write(f"line {number}\n".encode())
            assert json.loads(running.stdout.readline())["text"] == f"line {number}"
        if sys.platform != "win32":
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 130
            assert running.stderr.read() == b"spanshot: interrupted\n"
    finally:
        running.kill()
        running.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGPIPE")
def test_a_reader_that_stops_early_is_no_error(model, examples, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("to Oslo\n" * 2_000, encoding="utf-8")
    running = start("tag", "-e", examples, "-m", model, "-i", path, env={**os.environ, "OMP_NUM_THREADS": "1"})
    running.stdout.readline()
    running.stdout.close()
    errors = running.stderr.read()
    running.stdin.close()
    running.stderr.close()
    assert running.wait(60) == 0
    assert errors == b""
