"""The commands for one's own text, as their user gives them, with a small model of random weights."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from spanshot.formats.examples import read_examples
from tiny import EXAMPLES

TEXT = "they asked for Lima with Grace today"


def lines_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_text_is_tagged_as_a_json_line_where_there_is_no_terminal(spanshot, model, examples):
    (record,) = lines_of(spanshot("tag", "-e", examples, "-m", model, TEXT).out)
    assert record["text"] == TEXT
    assert record["entities"]
    for entity in record["entities"]:
        assert TEXT[entity["start"] : entity["end"]] == entity["text"]
        assert entity["label"] in {"city", "person"}
        assert 0 <= entity["score"] <= 1
        assert "because" not in entity


def test_the_examples_behind_a_decision_are_given_when_asked_for(spanshot, model, examples):
    (record,) = lines_of(spanshot("tag", "-e", examples, "-m", model, TEXT, "--because").out)
    for entity in record["entities"]:
        assert sum(reason["weight"] for reason in entity["because"]) == pytest.approx(1.0, abs=1e-3)
        assert all(reason["text"] in reason["example"] for reason in entity["because"])


def test_files_standard_input_and_arguments_are_read_in_order(spanshot, model, examples, tmp_path, monkeypatch):
    plain, records = tmp_path / "a.txt", tmp_path / "b.jsonl"
    plain.write_bytes("\ufefffirst line\r\n\r\n  second Oslo\r\n".encode())
    records.write_text('{"text": "third Rome", "id": 7}\n', encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO("fourth\n"))
    found = spanshot("tag", "-e", examples, "-m", model, "zero", "-i", plain, "-i", records, "-i", "-").out
    texts = [record["text"] for record in lines_of(found)]
    assert texts == ["zero", "first line", "  second Oslo", "third Rome", "fourth"]
    assert lines_of(found)[3]["id"] == 7


def test_without_text_or_file_standard_input_is_read(spanshot, model, examples, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Oslo\nRome\n"))
    assert len(lines_of(spanshot("tag", "-e", examples, "-m", model).out)) == 2


def test_a_file_can_be_taken_as_one_text(spanshot, model, examples, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Oslo\nand Rome\n", encoding="utf-8")
    (record,) = lines_of(spanshot("tag", "-e", examples, "-m", model, "-i", path, "--whole").out)
    assert record["text"] == "Oslo\nand Rome\n"


def test_an_output_file_holds_what_would_have_been_printed(spanshot, model, examples, tmp_path):
    printed = spanshot("tag", "-e", examples, "-m", model, TEXT).out
    assert spanshot("tag", "-e", examples, "-m", model, TEXT, "-o", tmp_path / "out.jsonl").out == ""
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == printed


def test_a_page_is_written_and_nothing_beside_it(spanshot, model, examples, tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    spanshot("tag", "-e", examples, "-m", model, TEXT, "--html", folder / "out.html")
    assert [path.name for path in folder.iterdir()] == ["out.html"]
    source = (folder / "out.html").read_text(encoding="utf-8")
    assert source.count("<article>") == 1
    assert re.sub("<small>.*?</small>|<[^>]*>", "", source.split("<article>")[1].split("</article>")[0]) == TEXT


def test_a_threshold_holds_back_what_is_less_sure(spanshot, model, examples):
    everything = lines_of(spanshot("tag", "-e", examples, "-m", model, TEXT).out)[0]["entities"]
    assert lines_of(spanshot("tag", "-e", examples, "-m", model, TEXT, "-t", "1").out)[0]["entities"] == []
    cities = lines_of(spanshot("tag", "-e", examples, "-m", model, TEXT, "-t", "person=1").out)[0]["entities"]
    assert cities == [entity for entity in everything if entity["label"] == "city"]


def test_what_was_learned_can_be_kept_and_tags_the_same(spanshot, model, examples, tmp_path):
    kept = tmp_path / "kept"
    result = spanshot("learn", "-e", examples, "-m", model, "-o", kept).out
    assert "city, person, from 3 examples" in result
    assert spanshot("tag", "-m", kept, TEXT).out == spanshot("tag", "-e", examples, "-m", model, TEXT).out


def test_what_cannot_be_used_of_the_examples_is_told(spanshot, model, tmp_path):
    path = tmp_path / "a.jsonl"
    spans = [{"start": 0, "end": 4, "label": "city"}, {"start": 6, "end": 7, "label": "city"}]
    path.write_text(json.dumps({"text": "Oslo again", "entities": spans}), encoding="utf-8")
    result = spanshot("tag", "-e", path, "-m", model, TEXT).err
    assert "begin or end inside a word ('a|gain')" in result


@pytest.mark.filterwarnings("default::spanshot.errors.SpanshotWarning")
def test_fine_tuning_on_too_few_examples_is_skipped_and_told_in_one_line(spanshot, model, examples):
    result = spanshot("tag", "--model", model, "--examples", examples, "--finetune", TEXT)
    assert result.code == 0
    assert result.err == "spanshot: fine-tuning skipped: it needs about 5 examples per label\n"
    assert result.out == spanshot("tag", "--model", model, "--examples", examples, TEXT).out


def test_fine_tuning_on_enough_examples_changes_what_is_found(spanshot, model, examples):
    often = [argument for _ in range(2) for argument in ("--examples", examples)]
    plain, finetuned = (spanshot("tag", "--model", model, *often, *own, TEXT) for own in ((), ("--finetune",)))
    assert finetuned.code == 0
    assert finetuned.err == ""
    assert json.loads(finetuned.out)["entities"] != json.loads(plain.out)["entities"]


def test_check_tells_what_is_thin_and_what_is_confused(spanshot, model, examples, tmp_path):
    path = tmp_path / "more.txt"
    path.write_text(EXAMPLES + "on [Monday](day) .\n" + EXAMPLES.splitlines()[0] + "\n", encoding="utf-8")
    shown = spanshot("check", path, "-m", model).out
    assert "'day' is marked in one example only (example 4)" in shown
    assert "the same example appears more than once (examples 1, 5)" in shown
    assert "Labels not measured, because no other example has them: day." in shown
    document = json.loads(spanshot("check", path, "-m", model, "--json").out)
    assert document["labels"]["day"] == {"spans": 1, "examples": 1}
    assert {finding["kind"] for finding in document["findings"]} - {"weak"} == {"duplicate", "single"}
    assert document["leave_one_out"]["untested_labels"] == ["day"]


def test_check_can_do_without_a_model_and_fail_if_told_to(spanshot, examples, tmp_path):
    assert "No problems found" in spanshot("check", examples, "--no-model", "--strict").out
    path = tmp_path / "one.txt"
    path.write_text("in [Oslo](city)\n", encoding="utf-8")
    assert spanshot("check", path, "--no-model", "--strict").code == 1
    assert spanshot("check", path, "--no-model").code == 0


def test_examples_are_measured_by_leaving_out(spanshot, model, examples):
    document = json.loads(spanshot("evaluate-examples", examples, "-m", model, "--json").out)
    assert document["total"]["tp"] + document["total"]["fn"] == 6
    assert set(document["labels"]) >= {"city", "person"}
    shown = spanshot("evaluate-examples", examples, "-m", model).out
    assert "Leave-one-out: each example tagged by a tagger that learned the others" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tag", "x"], "no examples; use --examples"),
        (["tag", "-e", "EXAMPLES", "-m", "MODEL", "-t", "high", "x"], "found 'high'"),
        (["tag", "-e", "EXAMPLES", "-m", "MODEL", "-t", "citty=0.5", "x"], "did you mean 'city'"),
        (["tag", "-e", "EXAMPLES", "-m", "MODEL", "-t", "2", "x"], "from 0 to 1"),
        (["tag", "-e", "nowhere.txt", "-m", "MODEL", "x"], "nowhere.txt"),
        (["tag", "-m", "MODEL", "x"], "load_model"),
        (["tag", "-e", "EXAMPLES", "-m", "nowhere", "x"], "nowhere"),
        (["tag", "-e", "EXAMPLES", "-m", "MODEL", "-i", "nowhere.txt"], "nowhere.txt"),
        (["tag", "-e", "EXAMPLES", "-m", "MODEL", "-i", "BAD.jsonl", "--strict"], "BAD.jsonl:2"),
        (["tag", "-e", "EXAMPLES", "-m", "MODEL", "-i", "LATIN.txt", "--strict"], "not UTF-8"),
        (["tag", "-e", "EXAMPLES", "-m", "MODEL", "x", "--html", "nowhere/page.html"], "nowhere does not exist"),
        (["check", "EMPTY.txt"], "EMPTY.txt"),
        (["evaluate-examples", "ONE.txt", "-m", "MODEL"], "at least two examples; found one"),
    ],
)
def test_bad_input_is_told_in_one_line(spanshot, model, examples, tmp_path, arguments, message):
    (tmp_path / "BAD.jsonl").write_text('{"text": "fine"}\n{"txt": 1}\n', encoding="utf-8")
    (tmp_path / "LATIN.txt").write_bytes("Zürich\n".encode("latin-1"))
    (tmp_path / "EMPTY.txt").write_text("", encoding="utf-8")
    (tmp_path / "ONE.txt").write_text("in [Oslo](city)\n", encoding="utf-8")
    known = {"EXAMPLES": examples, "MODEL": model}
    files = {path.name: path for path in tmp_path.iterdir()}
    result = spanshot(*(known.get(a, files.get(a, a)) for a in arguments))
    assert result.code == 2
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1


def test_markup_out_is_read_as_examples_that_mark_the_same(spanshot, model, examples, tmp_path):
    texts, more = tmp_path / "texts.txt", tmp_path / "more.txt"
    texts.write_text(f"{TEXT}\nwhy [sic] \\ Oslo ?\n", encoding="utf-8")
    answer = ("-e", examples, "-m", model, "-i", texts)
    records = lines_of(spanshot("tag", *answer).out)
    assert spanshot("tag", *answer, "--markup", "-o", more).code == 0
    again = read_examples(more)
    assert not again.dropped
    for sentence, record in zip(again.sentences, records, strict=True):
        assert [span.label for span in sentence.spans] == [entity["label"] for entity in record["entities"]]
        assert "".join(sentence.words) == record["text"].replace(" ", "")


@pytest.mark.parametrize(
    "asked", [("--json", "--markup"), ("--markup", "--html", "page.html"), ("--output", "a", "--html", "b")]
)
def test_two_kinds_of_answer_at_once_are_refused(spanshot, model, examples, asked):
    refused = spanshot("tag", "-e", examples, "-m", model, *asked, TEXT)
    assert refused.code == 2
    assert "cannot be combined" in refused.err
