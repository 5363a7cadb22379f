from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanshot.experiment.checkpoint import new_method, save
from spanshot.experiment.settings import RunSettings
from spanshot.predictor import Model, Predictor, load, merge, windows_over
from spanshot.types import ScoredSpan, Sentence, Span, SupportSet
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
    entities = Predictor(capitalised, SUPPORT)(text)
    assert [entity.text for entity in entities] == ["New York", "Rome", "Oslo"]
    assert all(text[entity.start : entity.end] == entity.text for entity in entities)
    assert {entity.label for entity in entities} == {"city"}


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\ufeff"])
def test_a_text_without_words_has_no_entities(text):
    assert Predictor(capitalised, SUPPORT)(text) == []


@given(st.lists(st.sampled_from(["a", "b", "Rome", "Oslo"]), min_size=1, max_size=120), st.integers(12, 40))
def test_windows_neither_cut_nor_repeat_what_fits_into_their_overlap(words, size):
    for at in range(4, len(words), 5):
        words[at] = "x"  # so that no run has more than four words
    text = " ".join(words)
    whole = Predictor(capitalised, SUPPORT, window=1000)(text)
    assert Predictor(capitalised, SUPPORT, window=size, overlap=8)(text) == whole


@given(st.integers(1, 500), st.integers(1, 60), st.data())
def test_windows_cover_everything_and_share_what_they_should(words, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    windows = windows_over(words, size, overlap)
    assert windows[0][0] == 0
    assert windows[-1][1] == words
    assert all(end - start == min(size, words) for start, end in windows)
    assert all(before[1] - after[0] >= overlap for before, after in pairwise(windows))
    assert len(set(windows)) == len(windows)


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
    save(folder / "run" / "best", new_method(settings), settings)
    return load(folder / "run")


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
