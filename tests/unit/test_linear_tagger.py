"""Learning with the packaged model: names, examples, rejections, thresholds, nesting, reasons; saving and loading."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import spanshot
from spanshot.engine.layout import ENGINE, WEIGHTS
from spanshot.errors import CheckpointError, ConfigError, SpanshotWarning
from spanshot.head_file import HEAD
from spanshot.manifest import Manifest, StoredFile
from spanshot.model import embedded_model
from spanshot.tagger_file import TAGGER
from spanshot.types import LearnOptions, Sentence, Span, SupportSet

EXAMPLES = [
    "[Steve Jobs](PER) founded [Apple](ORG) in California.",
    "[Isaac Newton](PER) studied at [Cambridge University](ORG).",
    "Nobody expected the harvest to be so late.",
]
TEXT = "Albert Einstein taught at Princeton University in New York."


@pytest.fixture(scope="module")
def tagger() -> spanshot.Tagger:
    return spanshot.learn(EXAMPLES)


def found(tagger: spanshot.Tagger, text: str = TEXT) -> set[tuple[str, str]]:
    return {(entity.text, entity.label) for entity in tagger(text)}


def scores(tagger: spanshot.Tagger, text: str = TEXT) -> list[float]:
    return [entity.score for entity in tagger.with_options(replace(tagger.options, threshold=0.02))(text)]


def test_two_examples_find_new_entities(tagger):
    assert {("Albert Einstein", "PER"), ("Princeton University", "ORG")} <= found(tagger)


def test_labels_are_found_by_name_alone():
    assert ("Albert Einstein", "person") in found(spanshot.learn(labels=["person", "university"]))
    assert spanshot.learn(labels={"PER": "person"}).labels == ("PER",)


def test_a_name_changes_the_scores_of_its_label(tagger):
    renamed = spanshot.learn(EXAMPLES, labels={"PER": "kitchen appliance"})
    (person,), (appliance,) = (
        [entity.score for entity in one.with_options(LearnOptions(threshold={"PER": 0.01}))(TEXT) if entity.start == 0]
        for one in (tagger, renamed)
    )
    assert appliance < person


def numbered(first: str, second: str) -> list[str]:
    return [text.replace("(PER)", f"({first})").replace("(ORG)", f"({second})") for text in EXAMPLES]


def test_names_that_only_number_labels_are_ignored_once_there_are_examples():
    tagger, renamed = spanshot.learn(numbered("label 1", "label 2")), spanshot.learn(numbered("B", "slot_7"))
    assert scores(tagger) == pytest.approx(scores(renamed), abs=1e-5)
    assert found(tagger) == {("Albert Einstein", "label 1"), ("Princeton University", "label 2")}
    assert not any(reason.kind == "name" for entity in tagger(TEXT) for reason in entity.because)
    named = spanshot.learn(numbered("B", "slot_7"), labels={"B": "person", "slot_7": "organization"})
    assert scores(named) == pytest.approx(scores(spanshot.learn(EXAMPLES)), abs=1e-5)


def test_a_number_as_name_counts_until_there_is_an_example():
    by_name = spanshot.learn(numbered("PER", "ORG"), labels=["class 3"])
    shown = by_name.add(["Nobody expected the [harvest](class 3) to be so late."])
    again = spanshot.learn([*numbered("PER", "ORG"), "Nobody expected the [harvest](class 3) to be so late."])
    assert by_name.labels == shown.labels == ("ORG", "PER", "class 3")
    assert scores(shown) != pytest.approx(scores(by_name), abs=1e-5)
    assert {entity.label for entity in again("a late harvest")} == {entity.label for entity in shown("a late harvest")}


def test_labels_without_examples_join_those_with_examples():
    tagger = spanshot.learn(EXAMPLES, labels=["city"])
    assert tagger.labels == ("ORG", "PER", "city")
    assert ("New York", "city") in found(tagger)
    assert found(tagger) >= found(spanshot.learn(EXAMPLES)) - {("New York", "ORG"), ("New York", "PER")}


def test_a_text_marked_in_an_example_is_found_again(tagger):
    assert found(tagger, "apple was here, said ISAAC NEWTON") == {("apple", "ORG"), ("ISAAC NEWTON", "PER")}


def test_a_rejected_span_lowers_the_score(tagger):
    words = ("I", "ate", "an", "Apple", "today")
    rejecting = tagger.add([Sentence(words, rejected=(Span(3, 4, "ORG"),))])
    silent = tagger.add([Sentence(words)])
    before, after = (max(scores(one, "She ate an Apple too"), default=0.0) for one in (silent, rejecting))
    assert after < before


def test_sentences_without_entities_are_examples(tagger):
    without = spanshot.learn(EXAMPLES[:2])
    assert scores(tagger) != scores(without)


def test_spans_of_a_label_that_was_added_later_are_not_counter_examples():
    first = ["She moved to [Oslo](city) with [Ada](person).", "[Ben](person) likes [Rome](city) and a glass of wine."]
    later = "He poured the [wine](drink)."
    old = spanshot.learn(first).add(later)
    assert [sentence.annotated for sentence in old.support.sentences] == [("city", "person")] * 2 + [None]
    told = spanshot.learn([*first, later])
    text = "They ordered a bottle of wine."
    assert max(scores(old, text)) > max(scores(told, text))


def test_the_threshold_is_one_for_all_labels_or_one_for_each(tagger):
    everything = tagger.with_options(LearnOptions(threshold=0.0))
    unclear = "Tim Cook of Microsoft met the board in Paris, and Nokia laughed."
    assert len(everything(unclear)) > len(tagger(unclear))
    assert min(entity.score for entity in everything(unclear)) >= 0.01
    strict = tagger.with_options(LearnOptions(threshold={"PER": 0.999}))
    assert {label for _, label in found(strict)} == {"ORG"}
    assert found(strict) == {one for one in found(tagger) if one[1] == "ORG"}


def test_flat_entities_never_share_a_word_and_nested_ones_may():
    examples = ["the [[Oslo](city) University Hospital](hospital) opened", "at the [[Rome](city) Clinic](hospital)"]
    flat, nested = spanshot.learn(examples, threshold=0.05), spanshot.learn(examples, threshold=0.05, nested=True)
    text = "We went to the Lima University Hospital and to Cape Town Clinic."
    entities = flat(text)
    assert all(a.end <= b.start for a, b in pairwise(entities))
    pairs = [(a, b) for a in nested(text) for b in nested(text) if a is not b and a.start < b.end and b.start < a.end]
    assert pairs
    for a, b in pairs:  # one lies within the other
        assert (a.start <= b.start and b.end <= a.end) or (b.start <= a.start and a.end <= b.end)


def test_the_reasons_are_signed_and_add_up_to_the_logit(tagger):
    linear = tagger.sentence_tagger
    slope, shift = linear.scores.maps(linear.head.counts)
    for entity in tagger("Apple hired Marie Curie from Cambridge University and from Nokia."):
        number = tagger.labels.index(entity.label)
        logit = sum(reason.weight for reason in entity.because)
        assert 1 / (1 + np.exp(-(slope[number] * logit + shift[number]))) == pytest.approx(entity.score, abs=1e-4)
        kinds = [reason.kind for reason in entity.because]
        assert kinds[-1] == "rest"
        assert "name" in kinds
        assert any(reason.weight < 0 for reason in entity.because)
        for reason in entity.because:
            if reason.kind == "example":
                assert reason.text in reason.example
            if reason.kind == "name":
                assert reason.text == {"PER": "person", "ORG": "organization"}[entity.label]


def test_a_text_match_is_a_reason(tagger):
    (entity,) = tagger("Apple grew.")
    assert "Apple" in {reason.text for reason in entity.because if reason.kind == "text"}


def test_a_label_without_examples_has_no_examples_among_its_reasons():
    (entity,) = spanshot.learn(labels=["person"])("Marie Curie left.")
    assert [reason.kind for reason in entity.because] == ["name", "rest"]


# Saving and loading


def test_a_saved_tagger_takes_kilobytes_and_finds_the_same(tagger, tmp_path):
    tagger.save(tmp_path / "mine")
    assert sum(path.stat().st_size for path in (tmp_path / "mine").iterdir()) < 50_000
    loaded = spanshot.load(tmp_path / "mine")
    assert loaded == tagger
    texts = [TEXT, "Apple hired Marie Curie.", "", "nothing\nat all"]
    for mine, again in zip(tagger.pipe(texts), loaded.pipe(texts), strict=True):
        assert [replace(e, because=()) for e in mine] == [replace(e, because=()) for e in again]
        for one, other in zip(mine, again, strict=True):
            assert [(r.kind, r.text) for r in one.because] == [(r.kind, r.text) for r in other.because]
            assert [r.weight for r in one.because] == pytest.approx([r.weight for r in other.because], abs=2e-3)
    extra = "[Grace Hopper](PER) joined [Remington Rand](ORG)."
    assert scores(loaded.add(extra)) == pytest.approx(scores(tagger.add(extra)), abs=1e-3)
    assert loaded.remove("ORG").labels == ("PER",)


def test_names_rejections_and_coverage_are_saved(tmp_path):
    tagger = spanshot.learn(EXAMPLES, labels={"PER": "person", "city": "town or city"})
    tagger = tagger.add([Sentence(("an", "Apple"), rejected=(Span(1, 2, "ORG"),))]).add("in [Oslo](city)")
    tagger.save(tmp_path / "mine")
    loaded = spanshot.load(tmp_path / "mine")
    assert loaded.support == tagger.support
    assert loaded.support.names == ("", "person", "town or city")
    assert found(loaded) == found(tagger)


def test_a_tagger_saved_without_examples_holds_no_text_and_cannot_learn_more(tagger, tmp_path):
    tagger.save(tmp_path / "private", examples=False)
    content = b"".join(path.read_bytes() for path in (tmp_path / "private").iterdir())
    assert not any(word in content for word in (b"Newton", b"Apple", b"harvest"))
    loaded = spanshot.load(tmp_path / "private")
    assert found(loaded) == found(tagger)
    assert [reason.kind for reason in loaded(TEXT)[0].because] == ["name", "rest"]
    for change in (lambda: loaded.add("[x](PER)"), lambda: loaded.remove("PER")):
        with pytest.raises(ConfigError, match="saved without its examples"):
            change()
    loaded.save(tmp_path / "again")
    assert found(spanshot.load(tmp_path / "again")) == found(tagger)


def test_a_whole_tagger_needs_no_packaged_model(tagger, tmp_path, monkeypatch):
    tagger.save(tmp_path / "whole", whole=True)
    assert (tmp_path / "whole" / WEIGHTS).stat().st_size > 1e6
    monkeypatch.setattr("spanshot.saved_tagger.packaged_folder", lambda: tmp_path / "nowhere")
    loaded = spanshot.load(tmp_path / "whole")
    assert found(loaded) == found(tagger)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again" / WEIGHTS).exists()


def rewrite(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    manifest = Manifest.read(folder)
    Manifest(manifest.kind, {**manifest.files, name: StoredFile.of(name, content)}, ()).write(folder)


def of_another_model(tagger: spanshot.Tagger, folder: Path, *, examples: bool) -> Path:
    tagger.save(folder, examples=examples)
    record = json.loads((folder / TAGGER).read_text(encoding="utf-8"))
    rewrite(folder, TAGGER, json.dumps({**record, "model": "0" * 64}).encode())
    return folder


def test_if_the_package_has_another_model_the_examples_are_learned_anew_with_a_warning(tagger, tmp_path):
    folder = of_another_model(tagger, tmp_path / "old", examples=True)
    with pytest.warns(SpanshotWarning, match="learned anew"):
        loaded = spanshot.load(folder)
    assert found(loaded) == found(tagger)
    without = of_another_model(tagger, tmp_path / "private", examples=False)
    with pytest.raises(CheckpointError, match="saved without examples, for another model"):
        spanshot.load(without)


@pytest.mark.parametrize("content", [b"", b"\xff" * 100, b"{}"])
def test_a_damaged_head_is_refused_in_one_line(tagger, tmp_path, content):
    tagger.save(tmp_path / "mine")
    rewrite(tmp_path / "mine", HEAD, content)
    with pytest.raises(CheckpointError, match="damaged") as raised:
        spanshot.load(tmp_path / "mine")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "change",
    [
        {"thetas": None},
        {"thetas": np.zeros((1, 3))},
        {"prior.weights": np.full((2, 256), np.nan, np.float32)},
        {"counts": np.array([-1, 2])},
        {"widths": np.array([10**9])},
        {"widths": np.zeros(0, np.int64)},
        {"annotated.sentence": np.full(4, 99)},
        {"annotated.row": np.full(4, -1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_forged_head_is_refused_in_one_line(tagger, tmp_path, change):
    from safetensors import numpy as tensors

    tagger.save(tmp_path / "mine")
    arrays = tensors.load((tmp_path / "mine" / HEAD).read_bytes())
    arrays = {name: array for name, array in {**arrays, **change}.items() if array is not None}
    rewrite(tmp_path / "mine", HEAD, tensors.save(arrays))
    with pytest.raises(CheckpointError) as raised:
        spanshot.load(tmp_path / "mine")
    assert "\n" not in str(raised.value)


def test_equal_models_give_equal_taggers_and_options_count(tagger):
    assert tagger == embedded_model().learn_support(SupportSet.of(tagger.support.sentences))
    assert tagger != spanshot.learn(EXAMPLES, nested=True)
    assert embedded_model() != embedded_model(dtype="int8")
    assert ENGINE in Manifest.read(Path(spanshot.__file__).parent / "model_files").files
