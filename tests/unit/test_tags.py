import pytest

from spanshot.errors import ConfigError, DataError
from spanshot.tags import (
    guess_scheme,
    outermost,
    spans_from_tags,
    tags_from_spans,
    tags_of_labels,
)
from spanshot.types import Span


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("io", ["O", "city", "city", "event", "O"]),
        ("bio", ["O", "B-city", "I-city", "B-event", "O"]),
        ("bioes", ["O", "B-city", "E-city", "S-event", "O"]),
    ],
)
def test_each_scheme_writes_and_reads_the_same_two_spans(scheme, tags):
    spans = (Span(1, 3, "city"), Span(3, 4, "event"))
    assert tags_from_spans(5, spans, scheme) == tags
    assert spans_from_tags(tags, scheme) == spans
    assert spans_from_tags(tags, scheme, strict=True) == spans


def test_a_long_bioes_span_has_inner_tags():
    assert tags_from_spans(4, [Span(0, 4, "x")], "bioes") == ["B-x", "I-x", "I-x", "E-x"]


def test_bio_parts_touching_spans_of_one_label_and_io_merges_them():
    touching = [Span(0, 1, "city"), Span(1, 3, "city")]
    assert spans_from_tags(tags_from_spans(3, touching, "bio"), "bio") == tuple(touching)
    assert spans_from_tags(tags_from_spans(3, touching, "io"), "io") == (Span(0, 3, "city"),)


def test_an_inside_tag_with_nothing_before_it_begins_a_span():
    assert spans_from_tags(["I-PER", "I-PER", "O", "I-LOC"], "bio") == (Span(0, 2, "PER"), Span(3, 4, "LOC"))


def test_an_inside_tag_of_another_label_begins_a_span():
    assert spans_from_tags(["B-PER", "I-LOC", "I-LOC"], "bio") == (Span(0, 1, "PER"), Span(1, 3, "LOC"))


def test_a_label_keeps_its_dashes():
    assert spans_from_tags(["B-event-other"], "bio") == (Span(0, 1, "event-other"),)
    assert spans_from_tags(["event-other"], "io") == (Span(0, 1, "event-other"),)


def test_no_tags_have_no_spans():
    assert spans_from_tags([], "bio") == ()


@pytest.mark.parametrize(
    ("scheme", "tags", "word"),
    [
        ("bio", ["O", "I-city"], 2),
        ("bio", ["B-city", "I-event"], 2),
        ("bioes", ["B-city", "O"], 2),
        ("bioes", ["S-city", "B-city"], 2),
        ("bioes", ["E-city"], 1),
        ("bioes", ["B-city", "S-city", "O"], 2),
    ],
)
def test_strict_reading_names_the_word_of_an_ill_formed_sequence(scheme, tags, word):
    with pytest.raises(DataError, match=f"word {word}: .* well-formed {scheme} tags; correct"):
        spans_from_tags(tags, scheme, strict=True)
    assert spans_from_tags(tags, scheme)  # leniently it has a meaning


@pytest.mark.parametrize("tag", ["city", "X-city", "B-", "-city", "B", "", "b-city", "BI-city"])
def test_a_tag_that_the_scheme_lacks_is_refused_with_the_tags_it_has(tag):
    with pytest.raises(DataError, match=r"word 2: .* bio scheme .O, B-LABEL, I-LABEL.; correct it or name another"):
        spans_from_tags(["O", tag], "bio")


def test_overlapping_spans_cannot_be_written_as_tags():
    with pytest.raises(DataError, match=r"overlapping.*keep one of them"):
        tags_from_spans(4, [Span(0, 3, "city"), Span(1, 2, "city")], "bio")


def test_a_span_beyond_the_sentence_cannot_be_written_as_tags():
    with pytest.raises(DataError, match="it has 2 words"):
        tags_from_spans(2, [Span(1, 3, "city")], "bio")


def test_an_unknown_scheme_lists_the_known_ones_and_the_nearest():
    with pytest.raises(ConfigError, match="io, bio, bioes; did you mean 'bioes'"):
        spans_from_tags([], "bioe")
    with pytest.raises(ConfigError) as error:
        spans_from_tags([], "xml")
    assert "did you mean" not in str(error.value)


def test_scheme_names_may_be_in_capitals():
    assert spans_from_tags(["B-x"], "BIO") == (Span(0, 1, "x"),)


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "organization-other", "person-actor"], "io"),
        (["O", "I-MISC", "I-PER"], "bio"),
        (["B-PER", "I-PER"], "bio"),
        (["B-PER", "E-PER"], "bioes"),
        (["S-PER", "O"], "bioes"),
        (["E-mail", "person"], "io"),
        (["B-PER", "U-PER"], "bio"),  # to be refused when read, rather than taken for two IO labels
        (["O", "O"], "io"),
        ([], "io"),
    ],
)
def test_the_scheme_is_guessed_from_the_prefixes(tags, scheme):
    assert guess_scheme([tags, ["O"]]) == scheme


def test_the_tags_of_labels_are_o_and_every_prefix_of_each():
    assert tags_of_labels(["a", "b"], "io") == ("O", "a", "b")
    assert tags_of_labels(["a", "b"], "bio") == ("O", "B-a", "I-a", "B-b", "I-b")


def test_of_nested_spans_tags_show_the_outermost():
    inner, outer, apart = Span(1, 2, "a"), Span(0, 3, "b"), Span(4, 5, "a")
    assert outermost([inner, apart, outer]) == (outer, apart)
    assert outermost([Span(0, 2, "a"), Span(1, 3, "a")]) == (Span(0, 2, "a"),)
    assert outermost([]) == ()
