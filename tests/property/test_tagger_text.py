"""Whatever the text: entities stand where they say, and nothing breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanshot.formats.examples import parse_examples
from spanshot.model import Model
from spanshot.research.checkpoint import new_method
from spanshot.research.training.settings import RunSettings
from spanshot.tagger import Tagger
from spanshot.types import LearnOptions, SupportSet
from tiny import write_tiny_encoder

EXAMPLES = [
    "[Oslo](city) and [Ada](person) met today .",
    "they asked for [Mary Ann](person) in [New York](city)",
]
PIECES = [
    *("Oslo", "New York", "Ada", ".", ",", "!", "Zürich's", "[a](b)", "\\", "<b>", "&amp;"),
    *("\r\n", "\t", "\n", "\x00", "\x07", "\u200b", "\u200d", "\u200e", "\u202e", "\ufeff", "\u00ad", "\u2028"),
    *("½", "ß", "İ", "\ufb01", "e\u0301", "\ud83d", "👩‍👩‍👧", "🇳🇴"),
    *("שלום", "مرحبا", "سلام\u200cعلیکم", "नमस्ते", "ไทย", "東京"),
]


@pytest.fixture(scope="module")
def predictors(tmp_path_factory) -> list[Tagger]:
    """Flat and nested ones of a small model, for which every span is an entity."""
    run = RunSettings.of(
        {
            "method": {"name": "esd", "size": 8, "longest": 3},
            "data": {"kind": "episodes", "train": "none", "dev": "none"},
            "encoder": {"name": str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))},
        }
    )
    model = Model(new_method(run).eval(), run.model)
    found = []
    for nested in (False, True):
        support = SupportSet.of(parse_examples(EXAMPLES).sentences)
        learned = model.learn_support(support, LearnOptions(nested=nested, window=12))
        found.append(replace(learned, sentence_tagger=replace(learned.sentence_tagger, o_bias=1000.0)))
    return found


texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join),
)


@settings(max_examples=150, deadline=None)
@given(texts)
@example("")
@example("x")
@example("\u200b")
@example("a" * 3000)
@example("Oslo\r\n" * 50)
def test_entities_stand_where_they_say_in_any_text(predictors, text):
    for predictor in predictors:
        entities = predictor(text)
        assert entities == sorted(entities, key=lambda entity: (entity.start, entity.end, entity.label))
        for entity in entities:
            assert text[entity.start : entity.end] == entity.text
            assert entity.text.strip() == entity.text != ""
            assert 0 <= entity.score <= 1
            assert entity.label in predictor.labels


@settings(max_examples=30, deadline=None)
@given(st.lists(texts, max_size=8), st.integers(1, 5))
def test_a_stream_has_an_answer_for_every_text(predictors, many, batch_size):
    assert len(list(predictors[0].pipe(many, batch_size))) == len(many)
