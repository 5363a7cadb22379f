"""Outputs never destroy inputs or old results, and interrupted jobs can be continued."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import sys

import pytest

from spanshot.cli.main import run
from spanshot.cli.output import PartialFile
from spanshot.tagger import Tagger

TEXTS = [f"they asked for Lima with Grace {number} today" for number in range(40)]
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def interrupt_after(monkeypatch, lines: int, error: BaseException) -> None:
    """Make the writing of results fail after so many lines."""
    add, count = PartialFile.add, 0

    def failing(self, text):
        nonlocal count
        if count == lines:
            raise error
        count += 1
        add(self, text)

    monkeypatch.setattr(PartialFile, "add", failing)


# Input and output


@pytest.mark.parametrize("link", ["same", "symlink", "hardlink", "dots"])
@pytest.mark.parametrize("option", ["--output", "--html"])
@posix
def test_an_output_that_is_also_the_input_or_an_example_is_refused(
    spanshot, model, examples, texts, tmp_path, link, option
):
    for path in (texts, examples):
        before = path.read_bytes()
        other = tmp_path / f"other-{path.name}"
        match link:
            case "same":
                other = path
            case "symlink":
                other.symlink_to(path)
            case "hardlink":
                other.hardlink_to(path)
            case "dots":
                other = tmp_path / "." / ".." / tmp_path.name / path.name
        result = spanshot("tag", "-e", examples, "-m", model, "-i", texts, option, other)
        assert result.code == 2
        assert "is also an input" in result.err
        assert path.read_bytes() == before


def test_other_commands_refuse_to_overwrite_their_input_too(spanshot, model, examples, lab):
    before = examples.read_bytes()
    for arguments in (
        ["learn", "-e", examples, "-m", model, "-o", examples],
        ["evaluate-examples", examples, "-m", model, "--html", examples],
        ["evaluate-examples", lab / "toy.toml", "--on", examples, "-m", model, "--html", examples],
        ["sample", examples, "-o", examples],
    ):
        assert spanshot(*arguments).code == 2
    assert examples.read_bytes() == before


def test_learn_refuses_a_folder_before_it_loads_a_model(spanshot, examples, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").touch()
    result = spanshot("learn", "-e", examples, "-m", tmp_path / "no such model", "-o", tmp_path / "thesis")
    assert result.code == 2
    assert "thesis: contains other files" in result.err


def test_a_trained_model_is_not_replaced_by_a_tagger(spanshot, model, examples, tmp_path):
    shutil.copytree(model, tmp_path / "copy")
    result = spanshot("learn", "-e", examples, "-m", model, "-o", tmp_path / "copy")
    assert result.code == 2
    assert "copy: contains a model, not a tagger" in result.err


def test_standard_input_and_output_may_not_be_one_file(spanshot, model, examples, texts, monkeypatch):
    before = texts.read_bytes()
    with texts.open(encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        result = spanshot("tag", "-e", examples, "-m", model, "-o", texts)
    assert result.code == 2
    assert "is also an input" in result.err
    assert texts.read_bytes() == before


# Old and new results


@pytest.mark.parametrize("option", ["--output", "--html"])
def test_the_old_file_stays_if_a_job_fails(spanshot, model, examples, tmp_path, option):
    output = tmp_path / "old"
    output.write_text("old results", encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"no": "text"}\n', encoding="utf-8")
    before = names(tmp_path)
    result = spanshot("tag", "-e", examples, "-m", model, "-i", tmp_path / "bad.jsonl", option, output, "--strict")
    assert result.code == 2
    assert output.read_text(encoding="utf-8") == "old results"
    assert names(tmp_path) == before


@pytest.mark.parametrize("option", ["--output", "--html"])
@posix
def test_links_are_followed(spanshot, model, examples, tmp_path, option):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    assert spanshot("tag", "-e", examples, "-m", model, "to Oslo", option, link).code == 0
    assert link.is_symlink()
    assert "Oslo" in real.read_text(encoding="utf-8")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.parametrize("option", ["--output", "--html"])
@posix
def test_a_named_pipe_is_written_to_and_stays_one(spanshot, model, examples, tmp_path, option):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = spanshot("tag", "-e", examples, "-m", model, "to Oslo", option, pipe)
        assert result.code == 0, result.err
        assert b"Oslo" in os.read(reader, 1 << 16)
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("output", "message"), [(".", "is a folder"), ("none/out.jsonl", "does not exist"), ("/dev/full", "space")]
)
@posix
def test_an_output_that_cannot_be_written_is_one_line(
    spanshot, model, examples, tmp_path, monkeypatch, output, message
):
    monkeypatch.chdir(tmp_path)
    result = spanshot("tag", "-e", examples, "-m", model, "to Oslo", "-o", output)
    assert result.code == 2
    assert message in result.err
    assert result.err.startswith("spanshot: error: ")
    assert result.err.count("\n") == 1
    assert names(tmp_path) == ["examples.txt"]


def test_a_full_disk_is_one_line_and_keeps_the_old_file(spanshot, model, examples, texts, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    output.write_text("old", encoding="utf-8")
    flush = PartialFile.save

    def full(self, inputs, digest):
        with self._named_errors():
            raise OSError(28, "No space left on device")
        flush(self, inputs, digest)

    monkeypatch.setattr(PartialFile, "save", full)
    result = spanshot("tag", "-e", examples, "-m", model, "-i", texts, "-o", output)
    assert result.code == 2
    assert result.err == f"spanshot: error: {output}: cannot be written: No space left on device\n"
    assert output.read_text(encoding="utf-8") == "old"


# Resume


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("killed")])
@pytest.mark.parametrize("source", ["file", "standard input"])
def test_an_interrupted_job_is_continued_where_it_stopped(
    spanshot, model, examples, texts, tmp_path, monkeypatch, error, source
):
    output = tmp_path / "out.jsonl"
    output.write_text("old", encoding="utf-8")
    arguments = ["tag", "-e", examples, "-m", model, "--batch", 1]
    given = ["-i", texts] if source == "file" else []

    def read_again():
        if source != "file":
            monkeypatch.setattr(sys, "stdin", io.StringIO(texts.read_text(encoding="utf-8")))

    read_again()
    whole = spanshot(*arguments, *given).out
    read_again()
    with monkeypatch.context() as patched:
        interrupt_after(patched, 21, error)
        if isinstance(error, KeyboardInterrupt):
            stopped = spanshot(*arguments, *given, "-o", output)
            assert stopped.code == 130
            assert "kept the results of 16 texts; continue with --resume" in stopped.err
        else:
            with pytest.raises(RuntimeError):
                run([str(argument) for argument in [*arguments, *given, "-o", output]])
    assert output.read_text(encoding="utf-8") == "old"
    assert ".out.jsonl.spanshot-partial" in names(tmp_path)

    read_again()
    tagged = []
    pipe = Tagger.pipe

    def counting(self, texts, *others, **options):
        texts = list(texts)
        tagged.extend(texts)
        return pipe(self, texts, *others, **options)

    monkeypatch.setattr(Tagger, "pipe", counting)
    resumed = spanshot(*arguments, *given, "-o", output, "--resume")
    assert resumed.code == 0, resumed.err
    assert tagged == TEXTS[16:]
    assert output.read_text(encoding="utf-8") == whole
    assert not [name for name in names(tmp_path) if "spanshot" in name]


def test_a_job_is_not_continued_with_other_input_or_options(spanshot, model, examples, texts, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    arguments = ["tag", "-e", examples, "-m", model, "--batch", 1, "-i", texts, "-o", output]
    with monkeypatch.context() as patched:
        interrupt_after(patched, 21, KeyboardInterrupt())
        assert spanshot(*arguments).code == 130
    for changed in (["-t", "0.5"], ["--markup"]):
        refused = spanshot(*arguments, "--resume", *changed)
        assert refused.code == 2
        assert "options, examples or model differ" in refused.err
    good = texts.read_bytes()
    texts.write_text("another line\n" + texts.read_text(encoding="utf-8"), encoding="utf-8")
    refused = spanshot(*arguments, "--resume")
    assert refused.code == 2
    assert "the input has changed" in refused.err
    texts.write_text("they asked\n", encoding="utf-8")
    assert "16 were done before" in spanshot(*arguments, "--resume").err
    texts.write_bytes(good + b"one more\n")  # what was done is still the same
    assert spanshot(*arguments, "--resume").code == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) == 41


def test_without_resume_a_job_starts_again_and_says_so(spanshot, model, examples, texts, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    arguments = ["tag", "-e", examples, "-m", model, "--batch", 1, "-i", texts, "-o", output]
    with monkeypatch.context() as patched:
        interrupt_after(patched, 21, KeyboardInterrupt())
        assert spanshot(*arguments).code == 130
    again = spanshot(*arguments)
    assert again.code == 0
    assert "discarded 16 results of an interrupted job" in again.err
    assert [json.loads(line)["text"] for line in output.read_text(encoding="utf-8").splitlines()] == TEXTS


def test_resume_with_nothing_to_continue_is_a_plain_job(spanshot, model, examples, texts, tmp_path):
    output = tmp_path / "out.jsonl"
    assert spanshot("tag", "-e", examples, "-m", model, "-i", texts, "-o", output, "--resume").code == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) == 40
    refused = spanshot("tag", "-e", examples, "-m", model, "-i", texts, "--resume")
    assert refused.code == 2
    assert "--resume needs --output FILE" in refused.err


@posix
def test_two_jobs_do_not_write_the_same_file_at_once(tmp_path):
    output = tmp_path / "out.jsonl"
    first = PartialFile(output, "job", resume=False)
    first.write("first")
    with pytest.raises(Exception, match="another spanshot process is writing it"):
        PartialFile(output, "job", resume=False)
    first.finish()
    assert output.read_text(encoding="utf-8") == "first\n"
