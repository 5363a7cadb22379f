"""A saved tagger is the tagger: it tags, and goes on learning, as the one that was saved; its file is checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import spanshot
from spanshot.errors import CheckpointError
from spanshot.manifest import Manifest, StoredFile
from spanshot.model import Model
from spanshot.research.checkpoint import new_method
from spanshot.tagger import Tagger
from spanshot.tagger_file import TAGGER
from tiny import toy_episodes, write_tiny_encoder
from tiny_esd import untrained_settings

TEXTS = ["Oslo asked for green salad and Rome", "bread is not Lima", "2018\u20132022\n  \u2022 Built Cape Town"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    run = untrained_settings(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))
    method = new_method(run).eval()
    method.o_bias.fill_(1000.0)  # so that random weights find something everywhere
    return Model(method, run.model)


@pytest.fixture(scope="module")
def finetuned(model) -> Tagger:
    (episode,) = toy_episodes(1, labels=("city", "dish"), support=8, seed=4)
    return model.learn(episode.support, finetune=True)


def found(tagger: Tagger) -> list[object]:
    return [[(e.start, e.end, e.label, round(e.score, 6)) for e in entities] for entities in tagger.pipe(TEXTS)]


def test_a_finetuned_tagger_does_not_change_when_saved_and_loaded(finetuned, tmp_path):
    finetuned.save(tmp_path / "mine")
    loaded = spanshot.load(tmp_path / "mine")
    assert finetuned.tuned is not None
    assert loaded.tuned is not None
    assert found(loaded) == found(finetuned)
    assert found(loaded.add("on [Monday](day)\n[Friday](day) again")) == found(
        finetuned.add("on [Monday](day)\n[Friday](day) again")
    )
    assert found(loaded.remove("dish")) == found(finetuned.remove("dish"))
    loaded.save(tmp_path / "again")
    assert found(spanshot.load(tmp_path / "again")) == found(finetuned)


def test_the_model_in_the_folder_of_a_finetuned_tagger_is_the_one_before_fine_tuning(finetuned, model, tmp_path):
    finetuned.save(tmp_path / "mine")
    weights = spanshot.load_model(tmp_path / "mine").method.state_dict()
    assert all(torch.equal(weight, weights[name]) for name, weight in model.method.state_dict().items())


def test_the_text_of_the_examples_is_kept_character_for_character(model, tmp_path):
    text = "2018\u20132022\n  \u2022 Built Oslo\x9b\u2028!"
    start = text.index("Oslo")
    tagger = model.learn([{"text": text, "entities": [{"start": start, "end": start + 4, "label": "city"}]}])
    tagger.save(tmp_path / "mine")
    (sentence,) = spanshot.load(tmp_path / "mine").support.sentences
    assert sentence.text == text
    assert sentence == tagger.support.sentences[0]


def forge(folder: Path, content: bytes) -> None:
    (folder / TAGGER).write_bytes(content)
    manifest = Manifest.read(folder)
    Manifest(manifest.kind, {**manifest.files, TAGGER: StoredFile.of(TAGGER, content)}, ()).write(folder)


def refused(folder: Path) -> None:
    with pytest.raises(CheckpointError) as raised:
        spanshot.load(folder)
    assert str(raised.value).startswith(f"{folder / TAGGER}: ")
    assert "\n" not in str(raised.value)


EXAMPLE = {"words": ["in", "Oslo"], "spans": [[1, 2, "city"]], "text": "in Oslo", "offsets": [[0, 2], [3, 7]]}


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": ["city", "city"]},
        {"labels": ["city", "day"]},
        {"labels": []},
        {"labels": "city"},
        {"labels": [""]},
        {"labels": None},
        {"examples": []},
        {"examples": [1]},
        {"examples": [EXAMPLE | {"words": []}]},
        {"examples": [EXAMPLE | {"words": ["in", ""]}]},
        {"examples": [EXAMPLE | {"words": "in Oslo"}]},
        {"examples": [EXAMPLE | {"spans": [[1, 3, "city"]]}]},
        {"examples": [EXAMPLE | {"spans": [[2, 1, "city"]]}]},
        {"examples": [EXAMPLE | {"spans": [[1, 2, "O"]]}]},
        {"examples": [EXAMPLE | {"spans": [[1, 2]]}]},
        {"examples": [EXAMPLE | {"spans": [[True, 2, "city"]]}]},
        {"examples": [EXAMPLE | {"spans": [[1, 1e300, "city"]]}]},
        {"examples": [EXAMPLE | {"spans": [[1, 10**300, "city"]]}]},
        {"examples": [EXAMPLE | {"text": "in Rome"}]},
        {"examples": [EXAMPLE | {"text": None}]},
        {"examples": [EXAMPLE | {"offsets": [[0, 2]]}]},
        {"examples": [EXAMPLE | {"offsets": [[0, 2], [3, 99]]}]},
        {"options": None},
        {"options": {}},
    ],
)
def test_forged_values_are_refused(model, tmp_path, fields):
    model.learn("in [Oslo](city)").save(tmp_path / "mine")
    record = json.loads((tmp_path / "mine" / TAGGER).read_text(encoding="utf-8"))
    forge(tmp_path / "mine", json.dumps({**record, **fields}).encode())
    refused(tmp_path / "mine")


@pytest.mark.parametrize(
    "value", [None, "x", -1, 1e300, pytest.param(10**400, id="huge"), [], {"a": []}], ids=lambda value: repr(value)
)
def test_forged_options_are_refused(model, tmp_path, value):
    model.learn("in [Oslo](city)").save(tmp_path / "mine")
    record = json.loads((tmp_path / "mine" / TAGGER).read_text(encoding="utf-8"))
    for option in record["options"]:
        if value is None and option == "threshold":  # the model's default
            continue
        forge(tmp_path / "mine", json.dumps({**record, "options": {**record["options"], option: value}}).encode())
        refused(tmp_path / "mine")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b"1" * 5000, b'{"labels": NaN}'])
def test_a_file_that_is_none_is_refused(model, tmp_path, content):
    model.learn("in [Oslo](city)").save(tmp_path / "mine")
    forge(tmp_path / "mine", content)
    refused(tmp_path / "mine")


def test_a_threshold_of_two_is_refused(model, tmp_path):
    model.learn("in [Oslo](city)").save(tmp_path / "mine")
    record = json.loads((tmp_path / "mine" / TAGGER).read_text(encoding="utf-8"))
    for threshold in (2, {"city": 2}, {"day": 0.5}, {"city": None}):
        forge(
            tmp_path / "mine", json.dumps({**record, "options": {**record["options"], "threshold": threshold}}).encode()
        )
        refused(tmp_path / "mine")
