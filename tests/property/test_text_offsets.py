import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spanshot.errors import DataError
from spanshot.formats.inline import parse_inline
from spanshot.types import Sentence, Span
from spanshot.words import BOUNDARIES, covered, split_words, words_of

INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u202e\x00\x1f\x7f\x85"
PIECES = [
    "Zoë",
    "e\u0301",
    "👩‍👩‍👧",
    "❤️",
    "שלום",
    "مرحبا",
    "می‌خواهم",
    "\r\n",
    " ",
    "\u00a0",
    "\u2028",
    "a_b",
    "[",
    "\u2019s",
    "1,5",
]
texts = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from([*PIECES, *INVISIBLE]), max_size=12).map("".join),
    st.text(st.characters(), max_size=20),  # lone surrogates too
)


@given(texts)
@example("")
@example(INVISIBLE)
@example("\ud800")
def test_words_stand_where_they_say_and_hold_all_that_can_be_seen(text):
    words = words_of(text)
    at = 0
    for word in words:
        assert at <= word.start < word.end
        assert text[word.start : word.end] == word.text
        assert not any(character.isspace() for character in word.text)
        assert word.text.strip(INVISIBLE) == word.text
        assert not all(unicodedata.category(character) in {"Cc", "Cf"} for character in word.text)
        at = word.end
    inside = {position for word in words for position in range(word.start, word.end)}
    for position, character in enumerate(text):
        if position not in inside:
            assert unicodedata.category(character)[0] in "ZC"


@given(texts, texts)
def test_white_space_parts_texts(one, other):
    apart = [word.text for word in words_of(one)] + [word.text for word in words_of(other)]
    assert [word.text for word in words_of(f"{one}\n{other}")] == apart


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Steve Jobs, 1955.", ["Steve", "Jobs", ",", "1955", "."]),
        ("don't", ["don", "'", "t"]),
        ("cafe\u0301 ❤️!", ["cafe\u0301", "❤️", "!"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("a\u200bb \u200d c\r\n", ["a", "b", "c"]),
        ("東京2020", ["東", "京", "2020"]),
    ],
)
def test_words_of_several_scripts(text, words):
    assert [word.text for word in words_of(text)] == words


def test_the_words_that_a_part_of_the_text_touches():
    words = words_of("to New York now")
    assert covered(words, 3, 11) == (1, 3)
    assert covered(words, 4, 8) == (1, 3)
    assert covered(words, 2, 3) == (0, 0)


# Inline markup


def lone_surrogates(text):
    return any(unicodedata.category(character) == "Cs" for character in text)


def escaped(text):
    return "".join(f"\\{character}" if character in "[]\\" else character for character in text)


@given(texts, texts, texts, st.text(min_size=1).map(str.strip).filter(lambda label: label not in {"", "O"}))
@example("", "0", "\ud800", "city")
@example("\ud800", "", "", "city")
def test_marked_text_is_read_back(before, inside, after, label):
    name = "".join(f"\\{character}" if character in "()\\" else character for character in label)
    markup = f"{escaped(before)} [{escaped(inside)}]({name}) {escaped(after)}"
    parts = [[word.text for word in words_of(part)] for part in (before, inside, after)]
    if lone_surrogates(markup) or not parts[1]:
        with pytest.raises(DataError, match="surrogate" if lone_surrogates(markup) else "contains no word"):
            parse_inline(markup)
        return
    start, end = len(parts[0]), len(parts[0]) + len(parts[1])
    assert parse_inline(markup) == Sentence((*parts[0], *parts[1], *parts[2]), (Span(start, end, label),))


def test_a_mark_may_end_inside_a_word():
    sentence = parse_inline("take [500](dose)mg")
    assert sentence.words == ("take", "500", "mg")
    assert sentence.text_of(1, 2) == "500"
    assert sentence.text == "take 500mg"


@given(texts, st.sets(st.sampled_from(sorted(BOUNDARIES))))
def test_words_that_are_cut_keep_their_offsets(text, cuts):
    whole, parts = words_of(text), words_of(text, cuts)
    assert all(text[part.start : part.end] == part.text != "" for part in parts)
    assert "".join(part.text for part in parts) == "".join(word.text for word in whole)
    assert {word.start for word in whole} <= {part.start for part in parts}
    assert split_words(parts, [part.start for part in parts]) == parts


@given(texts.filter(words_of), st.sets(st.sampled_from(sorted(BOUNDARIES))), st.data())
def test_a_sentence_that_is_cut_keeps_the_text_of_its_spans(text, cuts, data):
    words = words_of(text)
    start = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(start + 1, len(words)))
    sentence = Sentence.of_text(text, [Span(start, end, "x")])
    cut = sentence.cut_at(cuts)
    (span,) = cut.spans
    assert cut.text_of(span.start, span.end) == sentence.text_of(start, end)
    assert cut.words == tuple(word.text for word in words_of(text, cuts))
    assert cut.cut_at(cuts) == cut


def test_spans_may_nest_and_touch():
    sentence = parse_inline("[[New York](city) Times](paper)[!](mark)")
    assert sentence.words == ("New", "York", "Times", "!")
    assert sentence.spans == (Span(0, 2, "city"), Span(0, 3, "paper"), Span(3, 4, "mark"))


@pytest.mark.parametrize(
    ("markup", "message"),
    [
        ("[1] says", r"']' must be followed by a label in parentheses; write \[ and \] for brackets"),
        ("so] it is", "character 3: ']' without a '[' before it"),
        ("[never closed", "'[' before 'never closed' is never closed"),
        ("[Rome](city", "the label '(city' is never closed"),
        ("[Rome]()", "the label is empty"),
        ("[Rome](O)", "label must be a name other than 'O'"),
        ("[ ](city) x", "contains no word"),
        ("", "at least one word"),
        ("w " * 1001, "1,001 words"),
    ],
)
def test_bad_markup_is_named(markup, message):
    with pytest.raises(DataError) as error:
        parse_inline(markup)
    assert message in str(error.value)
