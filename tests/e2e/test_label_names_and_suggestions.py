"""Labels by name, a target precision, leave-one-out and suggestions, on the command line."""

from __future__ import annotations

import json

import pytest

from spanshot.cli import options
from word_encoder import word_model

EXAMPLES = """we saw [Oslo](city) today
we saw [Rome](city) today
they left [Lima](city) with [Ada](person)
[Ada](person) came with us
nothing happened here
"""


@pytest.fixture(autouse=True)
def quick_model(monkeypatch):
    """Replace the packaged model by one on word vectors."""
    model = word_model()
    monkeypatch.setattr(options, "load_model_or_default", lambda *_: model)
    return model


@pytest.fixture
def examples(tmp_path):
    path = tmp_path / "examples.txt"
    path.write_text(EXAMPLES, encoding="utf-8")
    return path


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


def test_labels_are_found_by_name_without_examples(spanshot):
    (record,) = lines_of(spanshot("tag", "--labels", "city, person", "a city is here", "-t", "0.01").out)
    assert ("city", "city") in [(entity["text"], entity["label"]) for entity in record["entities"]]


def test_a_readable_name_stands_for_a_code(spanshot, examples):
    result = spanshot("tag", "-e", examples, "-l", "X1=city", "the city", "--because", "-t", "0.01")
    (record,) = lines_of(result.out)
    reasons = [reason for entity in record["entities"] if entity["label"] == "X1" for reason in entity["because"]]
    assert ("name", "city") in [(reason["kind"], reason["text"]) for reason in reasons]


def test_two_names_of_a_label_are_an_error(spanshot):
    result = spanshot("tag", "-l", "PER=person", "-l", "PER=people", "text")
    assert (result.code, "'PER' has two names" in result.err) == (2, True)


def test_without_examples_and_labels_the_message_names_both(spanshot):
    result = spanshot("tag", "some text")
    assert result.code == 2
    assert "--examples FILE, --labels NAMES" in result.err


def test_a_target_out_of_reach_is_one_line_on_standard_error(spanshot, examples):
    result = spanshot("tag", "-e", examples, "--precision", "0.999", "we saw Oslo")
    assert result.code == 0
    assert "precision 0.999 cannot be reached for 'city'" in result.err


def test_check_shows_intervals_of_precision_and_recall(spanshot, examples):
    report = json.loads(spanshot("check", examples, "--json").out)["leave_one_out"]
    assert report["tagged"] == 5
    low, high = report["labels"]["city"]["recall_interval"]
    assert 0 <= low <= report["labels"]["city"]["recall"] <= high <= 1
    assert "In parentheses: 95 % intervals." in spanshot("check", examples).out


def test_evaluation_takes_thresholds_and_names(spanshot, examples):
    result = spanshot("evaluate-examples", examples, "-t", "1", "-l", "city=town", "--json")
    assert json.loads(result.out)["total"]["tp"] == 0


def test_suggestions_are_json_lines_with_the_doubtful_entity_and_the_place(spanshot, examples, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("we saw Oslo today\n\nwe saw Quito today\nthey left Bonn now\n", encoding="utf-8")
    records = lines_of(spanshot("suggest", texts, "-e", examples).out)
    assert {record["text"] for record in records} == {"we saw Quito today", "they left Bonn now"}
    assert {record["place"] for record in records} == {f"{texts}:3", f"{texts}:4"}
    doubt = records[0]["doubt"]
    assert records[0]["text"][doubt["start"] : doubt["end"]] == doubt["text"]


def test_suggestions_as_markup_can_be_used_as_examples(spanshot, examples, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("we saw Oslo then\nthey left Rome now\n", encoding="utf-8")
    result = spanshot("suggest", texts, "-e", examples, "--markup", "-n", "1")
    more = tmp_path / "more.txt"
    more.write_text(result.out, encoding="utf-8")
    assert len(result.out.splitlines()) == 1
    assert spanshot("suggest", texts, "-e", examples, "-e", more, "--format", "inline").code == 0


def test_a_missing_file_of_texts_is_named(spanshot, examples, tmp_path):
    result = spanshot("suggest", tmp_path / "none.txt", "-e", examples)
    assert (result.code, "none.txt: no such file" in result.err) == (2, True)
