"""Spans that end inside a word: words are cut there, in the examples and in new texts."""

from __future__ import annotations

import warnings

import pytest

from spanshot.errors import DataError, SpanshotWarning
from spanshot.formats.inline import parse_inline
from spanshot.tagger_file import TaggerFile, parse_tagger_json, tagger_json
from spanshot.types import LearnOptions, SupportSet
from word_encoder import word_model

EXAMPLES = ["take [500](dose)mg of it", "take [20](dose) mg", "it was 40mg in room B12"]


def test_the_kind_of_the_boundary_is_a_property_of_the_support_set():
    support = SupportSet.of(map(parse_inline, EXAMPLES))
    assert support.cuts == ("digit|letter",)
    assert support.sentences[2].words == ("it", "was", "40", "mg", "in", "room", "B12")


def test_new_texts_are_cut_in_the_same_way_and_offsets_stay_exact():
    tagger = word_model().learn(EXAMPLES, threshold=0.05)
    text = "take 500mg now"
    assert ("500", "dose") in [(entity.text, entity.label) for entity in tagger(text)]
    assert all(text[entity.start : entity.end] == entity.text for entity in tagger(text))


def test_without_such_a_mark_words_are_whole():
    assert SupportSet.of([parse_inline("take [500mg](dose)")]).cuts == ()


def test_adding_an_example_cuts_the_earlier_ones_too():
    model = word_model()
    added = model.learn(EXAMPLES[1:]).add(EXAMPLES[:1])
    assert added == model.learn([*EXAMPLES[1:], *EXAMPLES[:1]])


def test_removing_the_label_keeps_the_words():
    tagger = word_model().learn([*EXAMPLES, "[Oslo](city) it is"]).remove("dose")
    assert tagger.support.cuts == ("digit|letter",)


def test_a_boundary_within_one_kind_of_characters_cuts_only_its_example_with_a_warning():
    with pytest.warns(SpanshotWarning, match=r"2 marks begin or end inside a word \('un\|happily'\)"):
        tagger = word_model().learn(["it was un[happi](mood)ly late", "unhappily so"])
    assert tagger.support.cuts == ()
    assert tagger.support.sentences[0].words == ("it", "was", "un", "happi", "ly", "late")
    assert tagger.support.sentences[1].words == ("unhappily", "so")


def test_saved_taggers_remember_the_cuts_even_without_examples():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        support = SupportSet(("dose",), (), cuts=("digit|letter",))
    assert parse_tagger_json(tagger_json(TaggerFile(support, LearnOptions()))).support == support


def test_unknown_cuts_in_a_file_are_refused():
    text = tagger_json(TaggerFile(SupportSet(("dose",), (), cuts=("digit|letter",)), LearnOptions()))
    with pytest.raises(DataError, match="cuts must be kinds of boundaries"):
        parse_tagger_json(text.replace("digit|letter", "a|b"))
