import copy
import math
from dataclasses import replace
from itertools import chain, combinations, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spanshot import checkpoint as ground_checkpoint
from spanshot import model as model_module
from spanshot.errors import CheckpointError, ConfigError, EpisodeError, SpanshotWarning
from spanshot.model import Model, learn, load, load_model
from spanshot.research import checkpoint
from spanshot.research.checkpoint import new_method, save
from spanshot.research.training.settings import RunSettings
from spanshot.tagger import Tagger, merge
from spanshot.types import LearnOptions, ScoredSpan, Sentence, Span, SupportSet
from spanshot.words import windows
from tiny import toy_episodes, write_tiny_encoder

SUPPORT = SupportSet.of([Sentence(("Rome",), (Span(0, 1, "city"),))])


def capitalised(sentences):
    """A tagger that calls every run of capitalised words a city."""
    found = []
    for sentence in sentences:
        own, start = [], None
        for at, word in enumerate([*sentence.words, "end"]):
            if word[0].isupper():
                start = at if start is None else start
            elif start is not None:
                own.append(ScoredSpan(Span(start, at, "city"), 0.9))
                start = None
        found.append(own)
    return found


def test_entities_stand_where_they_say():
    text = "  from New York\r\nto Rome\u200b, (Oslo)!"
    entities = Tagger(capitalised, SUPPORT)(text)
    assert [entity.text for entity in entities] == ["New York", "Rome", "Oslo"]
    assert all(text[entity.start : entity.end] == entity.text for entity in entities)
    assert {entity.label for entity in entities} == {"city"}


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\ufeff"])
def test_a_text_without_words_has_no_entities(text):
    assert Tagger(capitalised, SUPPORT)(text) == []


@given(st.lists(st.sampled_from(["a", "b", "Rome", "Oslo"]), min_size=1, max_size=120), st.integers(12, 40))
def test_windows_neither_cut_nor_repeat_what_fits_into_their_overlap(words, size):
    for at in range(4, len(words), 5):
        words[at] = "x"  # so that no run has more than four words
    text = " ".join(words)
    whole = Tagger(capitalised, SUPPORT, LearnOptions(window=1000))(text)
    four = SupportSet.of([Sentence(("Rome",) * 4, (Span(0, 4, "city"),))])
    assert Tagger(capitalised, four, LearnOptions(window=size))(text) == whole


@given(st.integers(1, 500), st.integers(1, 60), st.data())
def test_windows_cover_everything_and_share_what_they_should(words, size, data):
    overlap = data.draw(st.integers(1, size - 1)) if size > 1 else 0
    bounds = windows([1] * words, size, overlap)
    assert bounds[0][0] == 0
    assert bounds[-1][1] == words
    assert all(end - start == min(size, words) for start, end in bounds if overlap)
    assert all(before[1] - after[0] >= overlap for before, after in pairwise(bounds))
    assert len(set(bounds)) == len(bounds)


def test_where_windows_disagree_the_one_that_sees_more_is_right():
    left = [ScoredSpan(Span(6, 9, "a"), 0.9)]  # one word before its window's end
    right = [ScoredSpan(Span(2, 5, "b"), 0.5), ScoredSpan(Span(5, 6, "c"), 0.5)]  # the first: two after its start
    found = merge([left, right], [(0, 10), (6, 16)])
    assert [scored.span for scored in found] == [Span(8, 11, "b"), Span(11, 12, "c")]


def test_nested_spans_of_one_window_are_kept():
    found = [[ScoredSpan(Span(0, 3, "a"), 0.5), ScoredSpan(Span(1, 2, "b"), 0.5)]]
    assert [scored.span for scored in merge(found, [(0, 5)])] == [Span(0, 3, "a"), Span(1, 2, "b")]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    folder = tmp_path_factory.mktemp("model")
    write_tiny_encoder(folder / "encoder")
    settings = RunSettings.of(
        {
            "method": {"name": "esd", "size": 16},
            "data": {"kind": "episodes", "train": "none", "dev": "none"},
            "encoder": {"name": str(folder / "encoder")},
        }
    )
    save(folder / "run" / "best", new_method(settings), settings.model)
    return load_model(folder / "run")


def test_a_model_learns_several_label_sets_side_by_side(model):
    (cities,) = toy_episodes(1, labels=("city",))
    (others,) = toy_episodes(1, labels=("day", "dish"))
    text = "they asked for Oslo with soup on Monday " * 40
    first = model.learn(cities.support)
    before = first(text)
    second = model.learn(others.support.sentences)(text)
    assert first(text) == before
    assert {entity.label for entity in before} <= {"city"}
    assert {entity.label for entity in second} <= {"day", "dish"}
    for entity in (*before, *second):
        assert text[entity.start : entity.end] == entity.text
        assert 0 <= entity.score <= 1


TEXT = "they asked for Oslo with apple pie today ; Ada again ! New York is not rice"


@pytest.fixture(scope="module")
def learned(model) -> Tagger:
    (episode,) = toy_episodes(1, labels=("city", "dish", "person"), support=6, seed=2)
    return found_easily(model.learn(episode.support))


def found_easily(predictor: Tagger) -> Tagger:
    """An untrained model finds little; without O, every span has a label."""
    return replace(predictor, sentence_tagger=replace(predictor.sentence_tagger, o_bias=1000.0))


def test_texts_are_tagged_in_order_as_each_alone(learned):
    texts = [TEXT, "", "Oslo", TEXT * 30, " ", "x " * 200, "Ada again !"] * 3
    together = list(learned.pipe(texts, batch_size=2))
    alone = [learned(text) for text in texts]
    assert [[(e.start, e.end, e.label) for e in own] for own in together] == [
        [(e.start, e.end, e.label) for e in own] for own in alone
    ]
    for one, other in zip(chain(*together), chain(*alone), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)
    assert any(learned(TEXT))


def test_a_stream_is_read_only_as_far_as_need_be(learned):
    read = []

    def endless():
        while True:
            read.append(1)
            yield "Oslo again"

    stream = learned.pipe(endless(), batch_size=2)
    next(stream)
    assert len(read) == 2
    for _ in range(100):
        next(stream)
    assert len(read) <= 101 + 2


def test_every_entity_says_which_examples_made_it(learned):
    for entity in learned(TEXT):
        assert entity.because
        assert [r.weight for r in entity.because] == sorted((r.weight for r in entity.because), reverse=True)
        for reason in entity.because:
            assert reason.text in reason.example
            example = next(s for s in learned.support.sentences if " ".join(s.words) == reason.example)
            marked = {(" ".join(s.words[x.start : x.end]), x.label) for s in [example] for x in s.spans}
            assert (reason.text, entity.label) in marked


def test_reasons_quote_the_examples_as_they_were_written(learned, tmp_path):
    shown = ["She's  off to [St. Gallen](city)…", "in [Oslo](city), [Ada](person)"]
    tagger = learned.model.learn(shown)
    tagger.save(tmp_path / "kept")
    for own in (tagger, load(tmp_path / "kept")):
        reasons = {(r.text, r.example) for entity in found_easily(own)(TEXT) for r in entity.because}
        assert reasons <= {
            ("St. Gallen", "She's  off to St. Gallen…"),
            ("Oslo", "in Oslo, Ada"),
            ("Ada", "in Oslo, Ada"),
        }
        assert reasons


def test_a_threshold_holds_back_what_is_less_sure(learned):
    scores = sorted(entity.score for entity in learned(TEXT))
    middle = scores[len(scores) // 2]
    strict = replace(learned, options=LearnOptions(threshold=middle))
    assert strict(TEXT) == [entity for entity in learned(TEXT) if entity.score >= middle]
    label = learned(TEXT)[0].label
    chosen = replace(learned, options=LearnOptions(threshold={label: 1.0}))
    assert chosen(TEXT) == [entity for entity in learned(TEXT) if entity.label != label or entity.score == 1.0]


@pytest.mark.parametrize("threshold", [-0.1, 1.5, math.nan, {"city": 2.0}])
def test_a_threshold_outside_of_0_to_1_is_refused(model, threshold):
    with pytest.raises(ConfigError, match="from 0 to 1"):
        model.learn(["in [Oslo](city)"], threshold=threshold)


def test_an_unknown_label_is_refused_with_a_hint(model, learned):
    with pytest.raises(EpisodeError, match="did you mean 'city'"):
        model.learn(["in [Oslo](city)"], threshold={"citty": 0.5})
    with pytest.raises(EpisodeError, match="did you mean 'dish'"):
        learned.remove("dosh")


def test_examples_can_be_added_and_labels_removed_without_changing_what_was_learned(model, learned):
    monday = Sentence(("on", "Monday"), (Span(1, 2, "day"),))
    more = learned.add([monday])
    assert learned.labels == ("city", "dish", "person")
    assert more.labels == ("city", "day", "dish", "person")
    assert more.support.sentences[-1] == monday
    assert found_easily(more)(TEXT) == found_easily(model.learn(more.support))(TEXT)
    fewer = more.remove("city").remove("person")
    assert fewer.labels == ("day", "dish")
    assert [s.words for s in fewer.support.sentences] == [s.words for s in more.support.sentences]
    with pytest.raises(EpisodeError, match="only label"):
        fewer.remove("day").remove("dish")


def test_options_survive_a_change_of_examples(model, learned):
    options = LearnOptions(threshold={"city": 0.5, "dish": 0.1}, window=20)
    fewer = model.learn_support(learned.support, options).remove("city")
    assert fewer.options == LearnOptions(threshold={"dish": 0.1}, window=20)


@pytest.mark.parametrize("nested", [False, True])
def test_a_saved_predictor_finds_the_same_once_loaded(model, tmp_path, nested):
    (episode,) = toy_episodes(1, labels=("city", "dish"), support=6, seed=4)
    predictor = model.learn_support(episode.support, LearnOptions(nested, {"city": 0.2}, window=30))
    predictor.save(tmp_path / "mine")
    back = load(tmp_path / "mine")
    assert back == predictor
    assert hash(back) == hash(predictor)
    assert found_easily(back)(TEXT * 5) == found_easily(predictor)(TEXT * 5)
    assert any(found_easily(back)(TEXT))


def test_nested_entities_are_found_where_they_are_asked_for(model):
    (episode,) = toy_episodes(1, labels=("city", "dish"), support=6, seed=4)
    flat, nested = (found_easily(model.learn(episode.support, nested=how)) for how in (False, True))

    def overlaps(entities):
        return any(one.start < two.end and two.start < one.end for one, two in combinations(entities, 2))

    assert not overlaps(flat(TEXT))
    assert overlaps(nested(TEXT))


def test_a_folder_without_anything_learned_is_told_from_a_trained_model(model, tmp_path):
    checkpoint.save(tmp_path / "bare", model.method, model.settings)
    with pytest.raises(CheckpointError, match="load_model"):
        load(tmp_path / "bare")
    with pytest.raises(CheckpointError, match="no such"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["{", "[]", '{"labels": ["a"]}'])
def test_a_damaged_file_is_named(learned, tmp_path, text):
    learned.save(tmp_path / "mine")
    (tmp_path / "mine" / "tagger.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"tagger\.json"):
        load(tmp_path / "mine")


def test_weights_that_half_precision_holds_exactly_are_stored_so(model, tmp_path):
    whole = tmp_path / "whole"
    checkpoint.save(whole, model.method, model.settings)
    half = copy.deepcopy(model.method).half().float()
    checkpoint.save(tmp_path / "half", half, model.settings)
    sizes = [(folder / "weights.safetensors").stat().st_size for folder in (whole, tmp_path / "half")]
    assert sizes[1] < 0.6 * sizes[0]
    loaded = checkpoint.load(tmp_path / "half").method.state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in half.state_dict().items())


def test_entities_as_long_as_the_longest_example_are_looked_for(model):
    title = " ".join(f"w{number}" for number in range(11))
    short = "see [Oslo](title) now"
    for examples, longest in (([short], 8), ([short, f"read [{title}](title) now"], 11)):
        ((_, scores),) = model.learn(examples).sentence_tagger.scores([Sentence(("x",) * 30)])
        assert (scores.bounds[:, 1] - scores.bounds[:, 0]).max() == longest


def test_examples_come_in_many_forms(model, tmp_path):
    sentence = Sentence(("in", "Oslo"), (Span(1, 2, "city"),))
    file = tmp_path / "examples.txt"
    file.write_text("in [Oslo](city)\n", encoding="utf-8")
    record = {"text": "in Oslo", "entities": [{"start": 3, "end": 7, "label": "city"}]}
    for shown in (
        [sentence],
        ["in [Oslo](city)"],
        "in [Oslo](city)",
        [record],
        file,
        str(file),
        SupportSet.of([sentence]),
    ):
        assert model.learn(shown).support == SupportSet.of([sentence])


def test_what_cannot_be_used_is_warned_of(model):
    spans = [{"start": 3, "end": 7, "label": "city"}, {"start": 0, "end": 1, "label": "city"}]
    with pytest.warns(SpanshotWarning, match="inside a word"):
        model.learn([{"text": "in Oslo", "entities": spans}])


def test_without_a_model_of_its_own_the_package_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(ground_checkpoint.resources, "files", lambda package: tmp_path)
    model_module.embedded_model.cache_clear()
    with pytest.raises(CheckpointError, match="load_model"):
        learn(["in [Oslo](city)"])
    model_module.embedded_model.cache_clear()


def test_the_packages_own_model_is_used_where_none_is_named(monkeypatch, tmp_path, model):
    checkpoint.save(tmp_path / "model_files", model.method, model.settings)
    monkeypatch.setattr(ground_checkpoint.resources, "files", lambda package: tmp_path)
    model_module.embedded_model.cache_clear()
    assert learn(["in [Oslo](city)"]).labels == ("city",)
    model_module.embedded_model.cache_clear()


def test_fine_tuning_on_the_examples_leaves_the_model_alone_and_is_saved(model, tmp_path):
    (episode,) = toy_episodes(1, labels=("city", "dish"), support=6, seed=4)
    before = {name: value.clone() for name, value in model.method.state_dict().items()}
    plain, finetuned = model.learn(episode.support), model.learn(episode.support, finetune=True)
    assert all(torch.equal(value, before[name]) for name, value in model.method.state_dict().items())
    scores = [next(p.sentence_tagger.scores([Sentence(("Oslo", "again"))]))[1].scores for p in (plain, finetuned)]
    assert abs(scores[0] - scores[1]).max() > 1e-4
    finetuned.save(tmp_path / "mine")
    assert found_easily(load(tmp_path / "mine"))(TEXT) == found_easily(finetuned)(TEXT)
    assert finetuned.remove("dish").tuned is not None
    assert plain.remove("dish").tuned is None
