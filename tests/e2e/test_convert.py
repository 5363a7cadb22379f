"""``spanshot convert`` and ``spanshot tag --to``, checked with the tools' own packages where they are installed."""

from __future__ import annotations

import json

import pytest

from spanshot.cli import options
from spanshot.formats.examples import read_documents, read_examples
from spanshot.formats.guess import FORMATS
from stub_tagger import NameTagger

JSONL = (
    '{"text": "Ada saw Oslo", "entities": [{"start": 0, "end": 3, "label": "person", "score": 0.5},'
    ' {"start": 8, "end": 12, "label": "city", "score": 0.25}], "id": 7}\n'
    '{"text": "nothing", "entities": []}\n'
)
NAMES = {
    "jsonl": "out.jsonl",
    "inline": "out.txt",
    "conll": "out.conll",
    "label-studio": "out.json",
    "doccano": "doccano.jsonl",
    "prodigy": "prodigy.jsonl",
    "brat": "out-brat",
    "spacy": "out.spacy",
    "table": "out.csv",
}
CONFIG = (
    '<View><Labels name="label" toName="text"><Label value="city"/><Label value="person"/></Labels>'
    '<Text name="text" value="$text"/></View>'
)


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A file of texts; examples are learned by a tagger that finds known names."""
    monkeypatch.setattr(options, "make_tagger", lambda *_, **__: NameTagger())
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "Ada saw Oslo", "id": 7}\n{"text": "nothing"}\n', encoding="utf-8")
    return path


@pytest.mark.parametrize("format", FORMATS)
def test_results_are_written_in_every_format(spanshot, texts, examples, tmp_path, format):
    if format == "spacy":
        pytest.importorskip("spacy")
    if format == "table":
        texts = texts.with_suffix(".csv")
        texts.write_text("text,id\nAda saw Oslo,7\nnothing,8\n", encoding="utf-8")
    out = tmp_path / "results" / NAMES[format]
    out.parent.mkdir()
    completed = spanshot("tag", "-e", examples, "-i", texts, "--to", format, "-o", out)
    assert completed.code == 0, completed.err
    first, *_, last = read_documents(out, format).documents
    assert [(first.text[m.start : m.end], m.label) for m in first.marks] == [("Ada", "person"), ("Oslo", "city")]
    assert last.text.strip() == "nothing"
    loses_scores = format in {"inline", "conll", "doccano", "brat"}
    assert ("left out 2 scores (not supported by the format)" in completed.err) == loses_scores
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("format", NAMES)
def test_a_file_is_converted_to_every_format_and_back(spanshot, tmp_path, format):
    if format == "spacy":
        pytest.importorskip("spacy")
    source, there, back = tmp_path / "in.jsonl", tmp_path / NAMES[format], tmp_path / "back.jsonl"
    source.write_text(JSONL, encoding="utf-8")
    assert spanshot("convert", source, there, "--to", format).code == 0
    completed = spanshot("convert", there, back, "--from", format)
    assert completed.out.endswith(f"back.jsonl: 2 texts ({format} to jsonl)\n")
    marks = [[(m.start, m.end, m.label) for m in d.marks] for d in read_documents(back).documents]
    assert marks == [[(0, 3, "person"), (8, 12, "city")], []]


def test_the_name_of_the_output_stands_for_its_format(spanshot, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(JSONL, encoding="utf-8")
    assert "(jsonl to conll)" in spanshot("convert", source, tmp_path / "a.bio").out
    completed = spanshot("convert", source, tmp_path / "a.xyz")
    assert completed.code == 2
    assert "cannot tell the format of" in completed.err


def test_one_line_says_what_a_format_cannot_express(spanshot, tmp_path):
    source = tmp_path / "in.jsonl"
    record = {
        "text": "New York Times",
        "entities": [{"start": 0, "end": 14, "label": "paper", "score": 1.0}, {"start": 0, "end": 8, "label": "city"}],
    }
    source.write_text(json.dumps(record) + "\n", encoding="utf-8")
    completed = spanshot("convert", source, tmp_path / "out.conll", "--scheme", "bioes")
    assert completed.err == (
        "spanshot: left out 1 score (not supported by the format): sentence 1; "
        "left out 1 span (overlaps another span): sentence 1 'New York' (city)\n"
    )
    assert (tmp_path / "out.conll").read_text(encoding="utf-8") == "New\tB-paper\nYork\tI-paper\nTimes\tE-paper\n\n"


def test_rejected_answers_are_left_out_with_a_word(spanshot, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(
        '{"text": "in Oslo", "spans": [], "answer": "reject"}\n'
        '{"text": "in Rome", "spans": [{"start": 3, "end": 7, "label": "city"}], "answer": "accept"}\n',
        encoding="utf-8",
    )
    completed = spanshot("convert", source, tmp_path / "out.txt")
    assert completed.err == "spanshot: left out 1 record (not accepted): in.jsonl:1\n"
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "in [Rome](city)\n"


def test_predictions_for_label_studio_are_valid_for_its_own_package(spanshot, texts, examples, tmp_path):
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason="needs label-studio-sdk")
    out = tmp_path / "out.json"
    spanshot("tag", "-e", examples, "-i", texts, "--to", "label-studio", "-o", out)
    interface = sdk.LabelInterface(CONFIG)
    tasks = json.loads(out.read_text(encoding="utf-8"))
    assert len(tasks) == 2
    for task in tasks:
        [prediction] = task["predictions"]
        assert interface.validate_prediction(prediction, return_errors=True) == []
    [prediction] = tasks[0]["predictions"]
    assert [result["score"] for result in prediction["result"]] == [1.0, 1 / 9]
    assert tasks[0]["data"] == {"id": 7, "text": "Ada saw Oslo"}


def test_predictions_are_not_examples_but_can_be_converted(spanshot, texts, examples, tmp_path):
    out, back = tmp_path / "out.json", tmp_path / "back.jsonl"
    spanshot("tag", "-e", examples, "-i", texts, "--to", "label-studio", "-o", out)
    completed = spanshot("learn", "-e", out, "-o", tmp_path / "tagger")
    assert "left out 2 records (not annotated)" in completed.err
    assert spanshot("convert", out, back).code == 0
    [first, _] = map(json.loads, back.read_text(encoding="utf-8").splitlines())
    assert first["entities"][0] == {"start": 0, "end": 3, "label": "person", "score": 1.0}


def test_a_docbin_is_what_spacy_trains_on(spanshot, texts, examples, tmp_path):
    spacy = pytest.importorskip("spacy")
    from spacy.training import Corpus

    out = tmp_path / "train.spacy"
    spanshot("tag", "-e", examples, "-i", texts, "--to", "spacy", "-o", out)
    first, second = Corpus(out)(spacy.blank("en"))
    assert [(e.text, e.label_) for e in first.reference.ents] == [("Ada", "person"), ("Oslo", "city")]
    assert second.reference.text == "nothing"


def test_results_are_examples_once_they_are_converted(spanshot, texts, examples, tmp_path):
    for format in ("inline", "conll", "doccano", "prodigy", "brat"):
        out = tmp_path / NAMES[format]
        assert spanshot("tag", "-e", examples, "-i", texts, "--to", format, "-o", out).code == 0
        assert read_examples(out, format).labels == {"city": 1, "person": 1}


def test_options_that_do_not_go_together_are_refused(spanshot, texts, examples, tmp_path):
    assert (
        "--json and --to cannot be combined"
        in spanshot("tag", "-e", examples, "-i", texts, "--json", "--to", "conll").err
    )
    assert "--to spacy writes files" in spanshot("tag", "-e", examples, "-i", texts, "--to", "spacy").err
    completed = spanshot("tag", "-e", examples, "-i", texts, "-o", tmp_path / "out.parquet")
    assert "the input must be one table" in completed.err
    assert "unknown format 'conl'" in spanshot("tag", "-e", examples, "-i", texts, "--to", "conl").err
