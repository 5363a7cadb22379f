"""A conversion to a format and back keeps text, marks, scores and fields, except for what is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanshot.formats.documents import Document, Mark
from spanshot.formats.dropped import DropReason
from spanshot.formats.examples import read_documents, read_examples
from spanshot.formats.writing import FORMATS, write_documents, write_examples
from spanshot.types import Sentence, Span
from strategies_sentences import labels, texts

scores = st.none() | st.floats(0, 1)
values = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(exclude_categories=["Cs"]))
fields = st.dictionaries(st.sampled_from(["id", "source", "né", "meta data"]), values, max_size=2)


@st.composite
def documents(draw, cut_words=True, with_fields=True):
    """Texts with marks of any characters that contain a word, some with scores."""
    text = draw(texts)
    plain = Document(text)
    marks = {}
    for _ in range(draw(st.integers(0, 3))):
        if cut_words:
            first, last = sorted([draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))])
        else:
            chosen = sorted([draw(st.sampled_from(plain.words)).start, draw(st.sampled_from(plain.words)).start])
            first = chosen[0]
            last = next(word.end for word in plain.words if word.start == chosen[1])
        if first < last and any(word.start < last and word.end > first for word in plain.words):
            mark = Mark(first, last, draw(labels), draw(scores))
            marks[mark.start, mark.end, mark.label] = mark
    predicted = any(mark.score is not None for mark in marks.values())
    own_fields = draw(fields) if with_fields else {}
    return Document(text, tuple(marks.values()), fields=own_fields, predicted=predicted)


def again(tmp_path_factory, written, format, name):
    path = tmp_path_factory.mktemp("documents") / name
    dropped = write_documents(path, written, format)
    read = read_documents(path, format)
    assert not read.dropped, read.dropped.summary()
    return read.documents, dropped


def content(document, *, scores=True, fields=True):
    marks = tuple((m.start, m.end, m.label, m.score if scores else None) for m in document.marks)
    return document.text, marks, dict(document.fields) if fields else {}


EXACT = {
    # scores and fields that the format has a place for
    ("jsonl", "a.jsonl"): (True, True),
    ("label-studio", "a.json"): (True, True),
    ("doccano", "a.jsonl"): (False, True),
    ("spacy", "a.spacy"): (True, False),
    ("table", "a.parquet"): (True, False),
    ("table", "a.arrow"): (True, False),
    ("table", "a.csv"): (True, False),
    ("brat", "folder"): (False, False),
}


@pytest.mark.parametrize(("format", "name"), EXACT)
@settings(max_examples=40)
@given(data=st.data())
def test_formats_of_characters_give_back_every_mark(tmp_path_factory, format, name, data):
    if format == "spacy":
        pytest.importorskip("spacy")
    if name.endswith((".parquet", ".arrow")):
        pytest.importorskip("pyarrow")
    has_scores, has_fields = EXACT[format, name]
    # doccano and brat have their own ways of counting; only whole words tell which one a file uses
    whole_words = format in {"doccano", "brat"}
    written = data.draw(st.lists(documents(cut_words=not whole_words), min_size=1, max_size=3))
    found, dropped = again(tmp_path_factory, written, format, name)
    expected = [content(document, scores=has_scores, fields=has_fields) for document in written]
    assert [content(document) for document in found] == expected
    lost_scores = 0 if has_scores else sum(m.score is not None for d in written for m in d.marks)
    lost_fields = 0 if has_fields else sum(len(d.fields) for d in written)
    assert dropped.count(DropReason.NO_PLACE) == lost_scores + lost_fields
    assert sum(omission.count for omission in dropped.omissions) == lost_scores + lost_fields


@settings(max_examples=60)
@given(st.lists(documents(), min_size=1, max_size=3))
@example([Document("2018-2022", (Mark(0, 2, "x"),))])
def test_prodigy_gives_back_all_marks_of_different_words(tmp_path_factory, written):
    found, dropped = again(tmp_path_factory, written, "prodigy", "a.jsonl")
    for before, after in zip(written, found, strict=True):
        assert (after.text, dict(after.fields)) == (before.text, dict(before.fields))
        assert set(after.marks) <= set(before.marks)
        assert not after.marks or after.predicted == before.predicted
    lost = sum(len(a.marks) - len(b.marks) for a, b in zip(written, found, strict=True))
    assert dropped.count(DropReason.OVERLAPS) == lost


@pytest.mark.parametrize(("format", "name"), [("inline", "a.txt"), ("conll", "a.conll")])
@settings(max_examples=40)
@given(st.lists(documents(), min_size=1, max_size=3))
def test_formats_of_words_say_what_they_leave_out(tmp_path_factory, format, name, written):
    if written[0].text.startswith("\ufeff") or any("\u2028" in document.text for document in written):
        return
    found, dropped = again(tmp_path_factory, written, format, name)
    lost = sum(len(a.marks) - len(b.marks) for a, b in zip(written, found, strict=True))
    reasons = (DropReason.OVERLAPS, DropReason.NO_WORD)
    assert sum(map(dropped.count, reasons)) == lost
    lost_scores = sum(m.score is not None for d in written for m in d.marks)
    assert dropped.count(DropReason.NO_PLACE) == lost_scores + sum(len(d.fields) for d in written)


def test_words_of_columns_stay_as_they_are_in_columns_prodigy_and_spacy(tmp_path):
    pytest.importorskip("spacy")
    sentence = Sentence(("U.S.", "of", "A."), (Span(0, 3, "country"),))
    for format, name in [("conll", "a.conll"), ("prodigy", "a.jsonl"), ("spacy", "a.spacy")]:
        write_documents(tmp_path / name, [Document.of(sentence)], format)
    assert (tmp_path / "a.conll").read_text(encoding="utf-8") == "U.S.\tB-country\nof\tI-country\nA.\tI-country\n\n"
    assert '"text": "U.S.", "start": 0' in (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    assert read_documents(tmp_path / "a.spacy").documents[0].marks == (Mark(0, 10, "country"),)


@pytest.mark.parametrize("format", FORMATS)
def test_a_text_without_words_can_be_written_in_every_format(tmp_path, format):
    name = {"spacy": "a.spacy", "table": "a.csv", "brat": "folder"}.get(format, "a.txt")
    if format == "spacy":
        pytest.importorskip("spacy")
    dropped = write_documents(tmp_path / name, [Document.tagged("", []), Document.tagged("in Oslo", [])], format)
    assert dropped.count(DropReason.NO_TEXT) == (format == "conll")
    assert [document.text for document in read_documents(tmp_path / name, format).documents][-1] == "in Oslo"


REJECTING = Sentence.of_text("Paris met Rome", [Span(2, 3, "city")])
REJECTING = replace(REJECTING, rejected=(Span(0, 1, "city"),), annotated=("city", "day"))


def test_rejected_spans_and_annotated_labels_survive_in_json_lines(tmp_path):
    dropped = write_examples(tmp_path / "a.jsonl", [REJECTING], "jsonl")
    assert not dropped
    assert read_examples(tmp_path / "a.jsonl").sentences == (REJECTING,)
    assert read_documents(tmp_path / "a.jsonl").documents[0].rejected == (Mark(0, 5, "city"),)


@pytest.mark.parametrize("format", ["inline", "conll", "label-studio", "doccano", "prodigy"])
def test_other_formats_say_that_rejected_spans_are_left_out(tmp_path, format):
    dropped = write_examples(tmp_path / "a.txt", [REJECTING], format)
    assert "left out 1 rejected span (not supported by the format): sentence 1" in dropped.summary()
    assert read_examples(tmp_path / "a.txt", format).labels == {"city": 1}
