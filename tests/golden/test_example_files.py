"""The same three sentences as each tool exports them, written for these tests: such files must stay readable."""

from pathlib import Path

import pytest

from spanshot.formats.examples import read_examples
from spanshot.formats.guess import FORMATS
from spanshot.formats.jsonl import record_of, write_jsonl
from spanshot.types import Sentence, Span

HERE = Path(__file__).parent / "examples"
TRIPS = (
    Sentence(
        ("Zoë", "Lind", "flew", "from", "Oslo", "to", "São", "Paulo", "🛫", "with", "Nordic", "Air", "."),
        (Span(0, 2, "person"), Span(4, 5, "city"), Span(6, 8, "city"), Span(10, 12, "company")),
    ),
    Sentence(("Καλημέρα", "από", "την", "Αθήνα", "!"), (Span(3, 4, "city"),)),
    Sentence(("Nobody", "was", "on", "board", ".")),
)
FILES = {
    "inline.txt": "inline",
    "columns.conll": "conll",
    "spans.jsonl": "jsonl",
    "spans.json": "jsonl",
    "label-studio.json": "label-studio",
    "label-studio-min.json": "label-studio",
    "doccano.jsonl": "doccano",
    "doccano-relations.jsonl": "doccano",
    "prodigy.jsonl": "prodigy",
    "brat": "brat",
    "brat/trips.txt": "brat",
    "brat/trips.ann": "brat",
    "table.csv": "table",
}


def test_every_format_has_a_file():
    assert {*FILES.values(), "spacy"} == set(FORMATS)  # the last one is not text


@pytest.mark.parametrize("name", FILES)
def test_the_format_is_told_by_the_content_and_gives_the_same_sentences(name):
    examples = read_examples(HERE / name)
    assert (examples.format, examples.sentences) == (FILES[name], TRIPS)
    assert examples.labels == {"city": 3, "company": 1, "person": 1}
    expected = "left out 1 record (not accepted): prodigy.jsonl:2" if name == "prodigy.jsonl" else ""
    assert examples.dropped.summary() == expected


@pytest.mark.parametrize("name", FILES)
def test_a_named_format_gives_the_same_as_a_guessed_one(name):
    assert read_examples(HERE / name, FILES[name]) == read_examples(HERE / name)


@pytest.mark.parametrize("name", [name for name in FILES if "." in name])
def test_windows_line_ends_a_byte_order_mark_and_blank_lines_change_nothing(name, tmp_path):
    for file in (HERE / name).parent.glob(f"{Path(name).stem}.*"):
        raw = file.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n"
        (tmp_path / file.name).write_bytes(b"\xef\xbb\xbf" + raw)
    assert read_examples(tmp_path / Path(name).name).sentences == TRIPS


def test_examples_are_written_as_json_lines(tmp_path):
    write_jsonl(tmp_path / "again.jsonl", TRIPS)
    assert read_examples(tmp_path / "again.jsonl").sentences == TRIPS
    write_jsonl(tmp_path / "more.jsonl", [record_of(TRIPS[1]), {"text": "Ω", "entities": []}])
    assert (tmp_path / "more.jsonl").read_text(encoding="utf-8") == (
        '{"text": "Καλημέρα από την Αθήνα !", "entities": [{"start": 17, "end": 22, "label": "city"}]}\n'
        '{"text": "Ω", "entities": []}\n'
    )
