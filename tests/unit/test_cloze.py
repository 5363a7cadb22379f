from __future__ import annotations

import random

import pytest

from spanshot.errors import DataError
from spanshot.research.methods.convex import BLANK, VALUE, blanked, cloze_pairs
from spanshot.types import Sentence, Span


def sentence(text: str) -> Sentence:
    return Sentence(tuple(text.split()))


def test_every_span_becomes_one_blank():
    marked = sentence("from New York to Rome today")
    assert blanked(marked, [Span(1, 3, "city"), Span(4, 5, "city")]).words == ("from", BLANK, "to", BLANK, "today")


def test_a_pair_shares_the_phrase_that_is_blanked():
    corpus = [sentence("fly to New York"), sentence("new york in May"), sentence("nothing here"), sentence("in June")]
    draw = cloze_pairs(corpus, 50)
    seen = set()
    for pair in draw(random.Random(1)):
        (span,) = pair.sentence.spans
        assert span.label == VALUE
        phrase = [word.lower() for word in pair.sentence.words[span.start : span.end]]
        at = pair.template.words.index(BLANK)
        (source,) = (
            s
            for s in corpus
            if s.words[:at] == pair.template.words[:at] and s.words[at + len(phrase) :] == pair.template.words[at + 1 :]
        )
        assert [word.lower() for word in source.words[at : at + len(phrase)]] == phrase
        assert source.words != pair.sentence.words
        seen.add(" ".join(phrase))
    assert seen == {"new", "york", "new york", "in"}


def test_the_same_random_state_draws_the_same_pairs():
    draw = cloze_pairs([sentence("a b c"), sentence("c a"), sentence("b a")], 5)
    assert draw(random.Random(3)) == draw(random.Random(3)) != draw(random.Random(4))


def test_phrases_that_stand_everywhere_or_begin_with_a_mark_are_not_drawn():
    corpus = [sentence(f"the w{n} , w{n + 1}") for n in range(200)]
    for pair in cloze_pairs(corpus, 100)(random.Random(0)):
        (span,) = pair.sentence.spans
        assert pair.sentence.words[span.start] not in {"the", ","}


def test_text_without_any_shared_phrase_is_refused():
    with pytest.raises(DataError, match="no two training sentences share a phrase"):
        cloze_pairs([sentence("a b"), sentence("c d")], 2)
