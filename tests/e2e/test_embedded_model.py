"""The model that comes with the package: it is there, it needs nothing else, and it does what README shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import spanshot
from spanshot.model import embedded_model
from spanshot.research.checkpoint import embedded_folder, read_record

ROOT = Path(__file__).resolve().parents[2]
FOUNDERS = ROOT / "examples" / "founders.txt"

NOTHING_BUT_THE_PACKAGE = """
import socket

def refused(*args, **kwargs):
    raise OSError("no network here")

socket.socket.connect = socket.create_connection = refused
import spanshot

tagger = spanshot.learn([
    "[Steve Jobs](PER) founded [Apple](ORG) in California.",
    "[Isaac Newton](PER) studied at [Cambridge University](ORG).",
])
for entity in tagger("Albert Einstein taught at Princeton University."):
    print(entity.text, entity.label, entity.start, entity.end)
"""


def test_two_examples_suffice_without_network_and_without_anything_in_the_home_folder(tmp_path):
    env = {**os.environ, "HOME": str(tmp_path), "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    told = subprocess.run(
        [sys.executable, "-c", NOTHING_BUT_THE_PACKAGE], capture_output=True, text=True, cwd=tmp_path, env=env
    )
    assert told.stdout.splitlines() == ["Albert Einstein PER 0 15", "Princeton University ORG 26 46"], told.stderr


def test_the_model_is_half_precision_and_small_enough_to_ship():
    folder = Path(spanshot.__file__).parent / "model_files"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 70e6


def test_its_settings_name_no_folder_of_the_machine_that_made_it():
    record = read_record(embedded_folder())
    assert embedded_model().method.name == record["method"]["name"] == "linear"
    assert record["encoder"]["name"] == "minilm"
    assert not Path(record.get("data", {}).get("folder", "")).is_absolute()


def test_its_card_says_what_it_was_trained_on_and_under_which_licences():
    card = (Path(spanshot.__file__).parent / "model_files" / "README.md").read_text(encoding="utf-8")
    parts = read_record(embedded_folder())["data"]["parts"]
    named = {"btc": "Broad Twitter Corpus", "wnut17": "WNUT-17", "fewnerd": "Few-NERD", "*": "44 of the 47 corpora"}
    for part in {part.partition("=")[0] for part in parts}:
        assert named.get(part, part).lower() in card.lower(), part
    rows = [line for line in card.splitlines() if line.startswith("| ") and "github.com" in line]
    assert len(rows) == 47 + 5  # and GENIA, which has a site of its own
    licences = ("CC BY", "CC0", "MIT", "Apache", "BSD", "CDLA", "public domain")
    assert all(any(licence in row.rsplit("|", 2)[1] for licence in licences) for row in rows)


def test_its_card_is_that_of_the_documentation_without_links_to_other_pages():
    card = (Path(spanshot.__file__).parent / "model_files" / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "model-card.md").read_text(encoding="utf-8")
    assert card == re.sub(r"\[([^]]+)\]\((?!https?:)[^)]*\)", r"\1", page)


def test_the_files_in_examples_are_tagged_by_default_with_reasons_that_stand_in_them(spanshot):
    told = spanshot("tag", "-e", FOUNDERS, "--because", "Grace Hopper left Remington Rand for a house in Virginia.")
    (record,) = [json.loads(line) for line in told.out.splitlines()]
    examples = FOUNDERS.read_text(encoding="utf-8")
    assert ("Grace Hopper", "PERSON") in {(entity["text"], entity["label"]) for entity in record["entities"]}
    for entity in record["entities"]:
        shown = [reason for reason in entity["because"] if reason["kind"] == "example"]
        assert shown
        for reason in shown:
            assert f"[{reason['text']}](" in examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("play halo by beyonce", {"halo", "beyonce"}),
        ("PUT ON THRILLER BY MICHAEL JACKSON", {"THRILLER", "MICHAEL JACKSON"}),
    ],
)
def test_commands_in_any_case_are_understood_from_three_examples(text, expected):
    tagger = spanshot.learn(
        [
            "play [purple rain](song) by [prince](artist)",
            "please put on [imagine](song) by [john lennon](artist)",
            "i want to hear [jolene](song) from [dolly parton](artist)",
        ]
    )
    assert {entity.text for entity in tagger(text)} == expected
