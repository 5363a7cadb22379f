import pytest

from spanshot.errors import DataError, EpisodeError
from spanshot.types import Episode, Sentence, Span, SupportSet

SUPPORT = SupportSet.of([Sentence(("to", "Oslo"), (Span(1, 2, "city"),))])


@pytest.mark.parametrize(("start", "end"), [(2, 2), (3, 2), (-1, 2)])
def test_a_span_must_hold_a_word(start, end):
    with pytest.raises(DataError, match="0 <= start < end"):
        Span(start, end, "city")


@pytest.mark.parametrize("label", ["", "O"])
def test_a_span_must_have_a_name_other_than_outside(label):
    with pytest.raises(DataError, match="label"):
        Span(0, 1, label)


def test_a_sentence_keeps_its_spans_sorted_and_once():
    inner, outer = Span(1, 2, "city"), Span(0, 2, "place")
    assert Sentence(("in", "Oslo"), (inner, outer, inner)).spans == (outer, inner)


def test_a_span_may_not_end_after_the_sentence():
    with pytest.raises(DataError, match="2 words"):
        Sentence(("in", "Oslo"), (Span(1, 3, "city"),))


def test_methods_that_need_examples_name_the_labels_without_one():
    support = SupportSet(("city", "day"), SUPPORT.sentences)
    assert support.without_examples() == ("day",)
    with pytest.raises(EpisodeError, match="no example for label 'day'"):
        support.check_examples()
    with pytest.raises(EpisodeError, match="no example for label 'day'"):
        Episode(support, SUPPORT.sentences)


def test_labels_may_have_names_and_no_examples():
    support = SupportSet.of(SUPPORT.sentences, {"day": "day of the  week"})
    assert support.labels == ("city", "day")
    assert support.names == ("", "day of the week")
    assert support == SupportSet(("city", "day"), SUPPORT.sentences, ("", "day of the week"))
    assert {support: 1}[SupportSet.of(SUPPORT.sentences, {"day": "day of the week"})] == 1
    assert support != SupportSet.of(SUPPORT.sentences, {"day": ""})


@pytest.mark.parametrize("names", [("x",), {"month": "x"}])
def test_names_must_be_those_of_the_labels(names):
    with pytest.raises(EpisodeError, match="name"):
        SupportSet(("city", "day"), SUPPORT.sentences, names)


def test_a_span_is_not_both_marked_and_rejected():
    span = Span(1, 2, "city")
    with pytest.raises(DataError, match="both marked and rejected"):
        Sentence(("in", "Oslo"), (span,), rejected=(span,))
    assert Sentence(("in", "Oslo"), rejected=(span,)) != Sentence(("in", "Oslo"))


def test_a_sentence_marks_only_labels_that_were_looked_for():
    with pytest.raises(DataError, match="'city'"):
        Sentence(("in", "Oslo"), (Span(1, 2, "city"),), annotated=("day",))


def test_equal_support_sets_are_one_key():
    again = SupportSet.of([Sentence(["to", "Oslo"], [Span(1, 2, "city")])])
    assert {SUPPORT: 1}[again] == 1


def test_an_episode_needs_a_query():
    with pytest.raises(EpisodeError, match="at least one query sentence"):
        Episode(SUPPORT, ())


def test_a_query_may_not_mark_what_the_support_lacks():
    with pytest.raises(EpisodeError, match="day"):
        Episode(SUPPORT, (Sentence(("on", "Monday"), (Span(1, 2, "day"),)),))


def test_a_sentence_keeps_the_text_that_it_was_read_from():
    sentence = Sentence.of_text("2018-2022\n  • Built", [Span(0, 3, "years")])
    assert sentence.text == "2018-2022\n  • Built"
    assert [sentence.text[start:end] for start, end in sentence.offsets] == list(sentence.words)
    assert sentence.text_of(0, 3) == "2018-2022"
    assert sentence.with_text() is sentence


def test_the_text_of_bare_words_has_single_spaces():
    written = Sentence(("in", "Oslo", "!")).with_text()
    assert (written.text, written.offsets) == ("in Oslo !", ((0, 2), (3, 7), (8, 9)))
    assert written.text_of(1, 3) == Sentence(("in", "Oslo", "!")).text_of(1, 3) == "Oslo !"


def test_sentences_of_the_same_words_and_spans_are_equal_whatever_their_text():
    assert Sentence.of_text("in  Oslo") == Sentence(("in", "Oslo"))
    assert len({Sentence.of_text("in  Oslo"), Sentence(("in", "Oslo"))}) == 1


@pytest.mark.parametrize("offsets", [(), ((0, 2),), ((0, 2), (4, 8)), ((0, 2), (3, 9)), ((3, 7), (0, 2))])
def test_the_offsets_of_a_text_must_fit_its_words(offsets):
    with pytest.raises(DataError, match=r"offsets of all 2 words|does not stand at"):
        Sentence(("in", "Oslo"), (), "in Oslo", offsets)


def test_a_sentence_with_fewer_labels_keeps_its_text():
    sentence = Sentence.of_text("in  Oslo", [Span(1, 2, "city")])
    assert sentence.with_labels([]).text == sentence.without_spans().text == "in  Oslo"
