from __future__ import annotations

import pytest

from spanshot.errors import InputError
from spanshot.examples.suggest import order
from spanshot.types import Sentence
from word_encoder import word_model

EXAMPLES = ["we saw [Oslo](city) today", "they left [Rome](city) today", "nothing happened here"]
TEXTS = ["we saw Lima today", "yes", "we saw Oslo today", "they left Quito today", "we saw Lima today"]


@pytest.fixture(scope="module")
def tagger():
    return word_model().learn(EXAMPLES)


def test_texts_without_a_suggestion_are_never_first(tagger):
    texts = ["hm", "we saw Lima today", "oh no", "they left Quito now"]
    silent = {n for n, text in enumerate(texts) if not tagger.suggest([text])[0].doubt}
    ranks = order(tagger, texts)
    assert sorted(ranks) == [0, 1, 2, 3]
    assert set(ranks[len(texts) - len(silent) :]) == silent


def test_texts_among_the_examples_and_duplicates_are_left_out(tagger):
    assert sorted(order(tagger, TEXTS)) == [0, 1, 3]


def test_suggestions_show_the_text_its_entities_and_the_doubt(tagger):
    first = tagger.suggest(TEXTS, count=1)[0]
    assert first.text == TEXTS[first.position]
    assert first.doubt.text == first.text[first.doubt.start : first.doubt.end]
    assert list(first.entities) == tagger(first.text)


def test_as_many_texts_are_suggested_as_asked_for(tagger):
    assert len(tagger.suggest(TEXTS, count=2)) == 2
    assert len(tagger.suggest(TEXTS, count=20)) == 3
    assert tagger.suggest([]) == []


def test_a_text_like_one_that_was_chosen_is_worth_less(tagger):
    texts = ["we saw Lima today", "we saw Lima today .", "they left Quito now"]
    chosen = order(tagger, texts)
    assert abs(chosen.index(0) - chosen.index(1)) == 2 or chosen[0] == 2


def test_names_alone_are_enough():
    tagger = word_model().learn(labels=["city"])
    assert tagger.suggest(["a city", "yes"], count=1)[0].text == "a city"


def test_a_single_text_is_refused(tagger):
    with pytest.raises(InputError, match="suggest expects a list of texts; found str"):
        tagger.suggest("we saw Lima")


def test_bare_sentences_among_the_examples_count_too():
    tagger = word_model().learn([Sentence(("we", "saw", "Oslo"))], labels=["city"])
    assert order(tagger, ["we saw Oslo", "we saw Rome"]) == [1]
