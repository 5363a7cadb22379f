"""`check` and `evaluate-examples`: what works, what does not, and what to do about it."""

from __future__ import annotations

import json
import re

import pytest

from tiny import EXAMPLES


@pytest.fixture
def gold(tmp_path):
    """A test file of the user's own, in another format than the examples."""
    path = tmp_path / "gold.conll"
    path.write_text("we O\nsaw O\nNew B-city\nYork I-city\n\nGrace B-person\nagain O\n", encoding="utf-8")
    return path


def test_examples_are_evaluated_on_a_test_file_of_any_format(spanshot, model, examples, gold):
    document = json.loads(spanshot("evaluate-examples", examples, "--on", gold, "-m", model, "--json").out)
    assert document["tagged"] == 2
    assert document["total"]["tp"] + document["total"]["fn"] == 2
    assert {"precision", "recall", "f1"} <= document["total"].keys()
    assert {"city", "person"} <= document["labels"].keys()
    assert {"confusions", "thresholds"} <= document.keys()
    shown = spanshot("evaluate-examples", examples, "--on", gold, "-m", model).out
    assert f"Learned 3 examples, evaluated on {gold}" in shown
    assert "precision" in shown


def test_a_label_of_the_test_file_without_an_example_counts_as_missed(spanshot, model, examples, tmp_path):
    path = tmp_path / "gold.txt"
    path.write_text("on [Monday](day) .\n", encoding="utf-8")
    document = json.loads(spanshot("evaluate-examples", examples, "--on", path, "-m", model, "--json").out)
    assert document["labels"]["day"]["fn"] == 1


def test_thresholds_nested_and_fine_tuning_are_evaluated_as_tag_applies_them(spanshot, model, examples, gold):
    def evaluated(*options):
        result = spanshot("evaluate-examples", examples, examples, "--on", gold, "-m", model, "--json", *options)
        assert result.code == 0, result.err
        return json.loads(result.out)

    plain = evaluated()
    found = plain["total"]["tp"] + plain["total"]["fp"]
    assert found > 0
    silent = evaluated("-t", "1")
    assert silent["total"]["tp"] + silent["total"]["fp"] == 0
    assert silent["thresholds"] == {}
    cities = evaluated("-t", "person=1")
    assert cities["labels"]["city"] == plain["labels"]["city"]
    nested = evaluated("--nested")
    assert nested["total"]["tp"] + nested["total"]["fp"] > found
    assert evaluated("--finetune")["tagged"] == 2


@pytest.mark.parametrize(("threshold", "message"), [("citty=0.5", "did you mean 'city'"), ("2", "between 0 and 1")])
def test_a_threshold_that_cannot_be_is_refused(spanshot, model, examples, threshold, message):
    result = spanshot("evaluate-examples", examples, "-m", model, "-t", threshold)
    assert result.code == 2
    assert message in result.err


def test_the_report_page_needs_no_script_and_shows_text_as_text(spanshot, model, examples, tmp_path):
    gold, page = tmp_path / "gold.txt", tmp_path / "report.html"
    gold.write_text('we saw [<script>alert("1")</script>](<b>city</b>) & [Oslo](city)\n', encoding="utf-8")
    result = spanshot("evaluate-examples", examples, "--on", gold, "-m", model, "--html", page)
    assert result.code == 0, result.err
    source = page.read_text(encoding="utf-8")
    assert not re.search(r"<script|<b>|(src|href)=|@import|url\(|javascript:", source)
    assert "&lt;script&gt;" in source
    assert "&lt;b&gt;city&lt;/b&gt;" in source
    assert "missed" in source
    assert "Content-Security-Policy" in source


def test_check_names_labels_that_are_not_learned_and_says_what_to_add(spanshot, model, tmp_path):
    path = tmp_path / "examples.txt"
    days = "on [Monday](day) it was\nthe [Friday](day) before\nsince [New Year](day) ever\n"
    path.write_text(EXAMPLES + days, encoding="utf-8")
    result = spanshot("check", path, "-m", model, "--json", "--strict")
    document = json.loads(result.out)
    f1 = {label: counts["f1"] for label, counts in document["leave_one_out"]["labels"].items()}
    weak = [finding["message"] for finding in document["findings"] if finding["kind"] == "weak"]
    assert {label for label, score in f1.items() if score < 0.5} == {m.split("'")[1] for m in weak} != set()
    assert all("add" in message for message in weak)
    assert result.code == 1
    assert "No problems found" not in spanshot("check", path, "-m", model).out


def test_check_on_very_many_examples_uses_a_sample_and_says_so(spanshot, model, tmp_path):
    path = tmp_path / "examples.txt"
    path.write_text("".join(f"w{n} saw [Oslo](city) {n}\n" for n in range(1000)), encoding="utf-8")
    shown = spanshot("check", path, "-m", model, "--most", 10).out
    assert "Sampled 10 of 1,000 examples." in shown


def test_a_saved_tagger_is_fine_tuned_on_its_examples_if_asked_for(spanshot, model, examples, tmp_path):
    often = [argument for _ in range(2) for argument in ("-e", examples)]
    assert spanshot("learn", *often, "-m", model, "-o", tmp_path / "saved").code == 0
    assert spanshot("learn", *often, "-m", model, "-o", tmp_path / "tuned", "--finetune").code == 0
    plain, tuned, saved_tuned = (
        spanshot("tag", "-m", tmp_path / folder, *options, "to Oslo with Grace")
        for folder, options in (("saved", ()), ("saved", ("--finetune",)), ("tuned", ()))
    )
    assert tuned.code == 0, tuned.err
    assert tuned.out != plain.out
    assert tuned.out == saved_tuned.out


@pytest.mark.parametrize("command", ["tag", "learn", "check", "evaluate-examples"])
def test_the_device_can_be_chosen_and_a_missing_one_is_one_line(spanshot, model, examples, tmp_path, command):
    arguments = {
        "tag": ["tag", "-e", examples, "to Oslo"],
        "learn": ["learn", "-e", examples, "-o", tmp_path / "saved"],
        "check": ["check", examples],
        "evaluate-examples": ["evaluate-examples", examples],
    }[command]
    assert spanshot(*arguments, "-m", model, "--device", "cpu").code == 0
    refused = spanshot(*arguments, "-m", model, "--device", "nonsense")
    assert refused.code == 2
    assert refused.err.startswith("spanshot: error: device 'nonsense' cannot be used")
    assert refused.err.count("\n") == 1
