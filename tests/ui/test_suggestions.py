"""Suggestions: the same entities as a tagger's, for all texts, from vectors that are kept."""

import pytest

from spanshot.model import embedded_model
from spanshot.types import LearnOptions, Sentence, Span, SupportSet
from spanshot.ui.suggestions import Suggester

EXAMPLES = [
    Sentence.of_text("Maria flies to Oslo on Friday", [Span(3, 4, "city"), Span(0, 1, "person")]),
    Sentence.of_text("We met Ahmed in Nairobi", [Span(4, 5, "city"), Span(2, 3, "person")]),
]
TEXTS = [
    "The train from Rome to Milan leaves on Monday.",
    "Chen takes the bus\nfrom Lima to Cusco 🚌 with Kofi.",
    "Nobody knew why.",
    "Maria flies to Oslo on Friday",
    " ".join(["Sofia moved from Accra to Toronto."] * 40),  # several windows
    "",
]


def places(entities):
    return [(e.text, e.label, e.start, e.end) for e in entities]


@pytest.fixture(scope="module")
def model():
    return embedded_model()


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("room", [10**9, 0])
def test_suggestions_equal_the_entities_of_a_tagger(model, nested, room):
    suggester = Suggester(model, TEXTS, room=room)
    for count in (1, 2):
        support = SupportSet.of(EXAMPLES[:count])
        options = LearnOptions(nested=nested, threshold={"city": 0.3} if count == 2 else None)
        suggester.learn(support, options)
        tagger = model.learn_support(support, options)
        for at, entities in suggester.suggestions(range(len(TEXTS))):
            expected = tagger(TEXTS[at])
            assert places(entities) == places(expected)
            assert [e.score for e in entities] == pytest.approx([e.score for e in expected], abs=5e-3)
    assert bool(suggester.store.blocks) is bool(room)


def test_a_text_in_progress_is_tagged_without_its_own_annotation(model):
    suggester = Suggester(model, TEXTS)
    started = Sentence.of_text(TEXTS[0], [Span(3, 4, "city")])  # Milan is not marked yet
    suggester.learn(SupportSet.of([*EXAMPLES, started]), LearnOptions())
    ((at, entities),) = suggester.in_progress([(0, 2)])
    assert at == 0
    assert ("Milan", "city", 23, 28) in places(entities)


def test_reasons_name_the_examples_that_a_suggestion_resembles(model):
    suggester = Suggester(model, TEXTS)
    suggester.learn(SupportSet.of(EXAMPLES), LearnOptions())
    reasons = suggester.why(TEXTS[0], 15, 19, "city")
    sources = [reason.source for reason in reasons if reason.kind == "example"]
    assert (0, Span(3, 4, "city")) in sources
    assert suggester.why(TEXTS[0], 15, 19, "unknown") == []
