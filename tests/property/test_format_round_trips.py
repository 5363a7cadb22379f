"""What is written in a format is read back: the same text, words and spans, except for what the writer reports."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanshot.formats import writing
from spanshot.formats.columns import read_columns
from spanshot.formats.examples import read_examples
from spanshot.formats.guess import FORMATS
from spanshot.formats.writing import write_examples
from spanshot.types import Sentence, Span
from spanshot.words import words_of
from strategies_sentences import any_spans, flat_spans, texts

JSON_FORMATS = ["jsonl", "prodigy", "label-studio", "doccano"]


@st.composite
def read_sentences(draw, spans=any_spans, texts=texts):
    """A sentence as it is read from a text."""
    text = draw(texts)
    return Sentence.of_text(text, draw(spans(len(words_of(text)))))


def on_one_line(text):
    return not set(text) & set("\r\n") and not text.startswith("\ufeff")


def write_and_read(tmp_path_factory, sentences, format, **options):
    name = "data.ann" if format == "brat" else "data.txt"
    path = tmp_path_factory.mktemp("examples") / name
    dropped = write_examples(path, sentences, format, **options)
    examples = read_examples(path, format)
    assert not examples.dropped, examples.dropped.summary()
    return examples.sentences, dropped


def shown(sentences):
    return [(sentence.text, sentence.words, sentence.spans) for sentence in sentences]


def test_every_format_that_is_read_can_be_written():
    assert set(writing.FORMATS) == set(FORMATS)


@pytest.mark.parametrize("format", JSON_FORMATS)
@settings(max_examples=50)
@given(st.lists(read_sentences(), min_size=1, max_size=3))
@example([Sentence.of_text("2018\u20132022\n  • Built", [Span(4, 5, "x")])])
def test_json_formats_give_back_text_words_and_spans(tmp_path_factory, format, sentences):
    again, dropped = write_and_read(tmp_path_factory, sentences, format)
    assert shown(again) == shown(sentences)
    assert not dropped


@pytest.mark.parametrize("format", JSON_FORMATS)
@settings(max_examples=50)
@given(st.lists(read_sentences(), min_size=1, max_size=3).filter(lambda some: any(s.spans for s in some)))
def test_written_json_is_recognised(tmp_path_factory, format, sentences):
    path = tmp_path_factory.mktemp("examples") / "data.json"
    write_examples(path, sentences, format)
    assert read_examples(path).format == format


@settings(max_examples=50)
@given(st.lists(read_sentences(flat_spans), min_size=1, max_size=3))
def test_markup_gives_back_all_but_line_ends(tmp_path_factory, sentences):
    if sentences[0].text.startswith("\ufeff"):
        return
    again, dropped = write_and_read(tmp_path_factory, sentences, "inline")
    assert again == tuple(sentences)
    expected = [s.text.replace("\r", " ").replace("\n", " ") for s in sentences]
    assert [s.text for s in again] == expected
    ends = sum(s.text.replace("\r\n", "\n").replace("\r", "\n").count("\n") for s in sentences)
    assert dropped.count("line breaks cannot be written") == ends


@settings(max_examples=50)
@given(st.lists(read_sentences(), min_size=1, max_size=3))
def test_markup_reports_spans_that_cross(tmp_path_factory, sentences):
    if sentences[0].text.startswith("\ufeff"):
        return
    again, dropped = write_and_read(tmp_path_factory, sentences, "inline")
    lost = sum(len(a.spans) - len(b.spans) for a, b in zip(sentences, again, strict=True))
    assert all(set(b.spans) <= set(a.spans) for a, b in zip(sentences, again, strict=True))
    assert dropped.count("overlaps another span") == lost


@pytest.mark.parametrize("scheme", ["io", "bio", "bioes"])
@settings(max_examples=50)
@given(st.lists(read_sentences(texts=texts.filter(lambda text: "\u2028" not in text)), min_size=1, max_size=3))
def test_columns_give_back_words_and_the_longest_spans(tmp_path_factory, scheme, sentences):
    path = tmp_path_factory.mktemp("examples") / "data.conll"
    dropped = write_examples(path, sentences, "conll", scheme=scheme)
    again = read_columns(path, scheme=scheme)
    assert [s.words for s in again] == [s.words for s in sentences]
    lost = sum(len(a.spans) - len(b.spans) for a, b in zip(sentences, again, strict=True))
    assert sum(omission.count for omission in dropped.omissions) == lost
    if scheme != "io":
        assert all(set(b.spans) <= set(a.spans) for a, b in zip(sentences, again, strict=True))


@settings(max_examples=50)
@given(st.lists(read_sentences(texts=texts.filter(on_one_line)), min_size=1, max_size=3))
def test_brat_gives_back_sentences_of_one_line(tmp_path_factory, sentences):
    again, dropped = write_and_read(tmp_path_factory, sentences, "brat")
    assert again == tuple(sentences)
    assert [s.text for s in again] == [f"{s.text}\n" for s in sentences]
    assert not dropped
    assert shown(write_and_read(tmp_path_factory, again, "brat")[0]) == shown(again)


@settings(max_examples=50)
@given(st.lists(read_sentences(), min_size=1, max_size=3))
def test_brat_gives_back_the_whole_text_and_every_span(tmp_path_factory, sentences):
    again, dropped = write_and_read(tmp_path_factory, sentences, "brat")
    expected = "".join(s.text if s.text.endswith("\n") else f"{s.text}\n" for s in sentences)
    assert "".join(s.text for s in again) == expected
    assert not dropped

    def marked(some):
        return [s.text_of(x.start, x.end) for s in some for x in s.spans]

    assert sorted(marked(again)) == sorted(marked(sentences))


@pytest.mark.parametrize(("format", "label"), [("brat", "two words"), ("inline", "a\nb"), ("inline", " x")])
def test_a_label_that_a_format_cannot_hold_is_reported(tmp_path, format, label):
    path = tmp_path / "data.ann"
    dropped = write_examples(path, [Sentence.of_text("in Oslo", [Span(1, 2, label)])], format)
    assert dropped.count("label cannot be written") == 1
    assert read_examples(path, format).sentences == (Sentence(("in", "Oslo")),)


def test_lost_line_ends_are_reported_in_words(tmp_path):
    dropped = write_examples(tmp_path / "a.txt", [Sentence.of_text("a\nb\r\nc")], "inline")
    assert dropped.summary() == "left out 2 line ends (line breaks cannot be written): sentence 1; sentence 1"
