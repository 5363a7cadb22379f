"""Labelled examples: whatever the script, the offsets and the tool, the words marked are those that were meant."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spanshot.errors import DataError
from spanshot.formats.columns import write_columns
from spanshot.formats.examples import parse_examples, read_examples
from spanshot.formats.guess import FORMATS
from spanshot.formats.inline import parse_inline, write_inline
from spanshot.formats.jsonl import write_jsonl
from spanshot.types import Sentence, Span
from spanshot.words import words_of
from strategies_files import damaged, json_values, scraps
from strategies_sentences import any_spans, flat_spans, labels

WORDS = ["Zoë", "e\u0301", "👩‍👩‍👧", "❤️", "שלום", "مرحبا", "می‌خواهم", "東京", "\U0001d518", "O"]
PIECES = [*WORDS, "\r\n", "\n", " ", "\u00a0", "\u2028", "[", "]("]
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=15).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
).filter(lambda text: words_of(text))


@st.composite
def marked(draw, spans=any_spans, texts=texts):
    """A text, its sentence, and the sentence's spans in characters."""
    text = draw(texts)
    words = words_of(text)
    sentence = Sentence(tuple(word.text for word in words), draw(spans(len(words))))
    return text, sentence, [(words[s.start].start, words[s.end - 1].end, s.label) for s in sentence.spans]


def utf16(text, position):
    return len(text[:position].encode("utf-16-le")) // 2


def ours(text, spans):
    return {"text": text, "entities": [{"start": start, "end": end, "label": label} for start, end, label in spans]}


def label_studio(text, spans, count=lambda _, position: position):
    results = [
        {
            "type": "labels",
            "value": {
                "start": count(text, start),
                "end": count(text, end),
                "text": text[start:end],
                "labels": [label],
            },
        }
        for start, end, label in spans
    ]
    return {"data": {"text": text}, "annotations": [{"result": results}]}


def flat_label_studio(text, spans):
    values = [{"start": s, "end": e, "text": text[s:e], "labels": [label]} for s, e, label in spans]
    return {"text": text, "annotation_id": 3, **({"label": values} if values else {})}


def prodigy(text, spans):
    return {"text": text, "spans": ours(text, spans)["entities"], "answer": "accept"}


def doccano(text, spans):
    return {"id": 1, "text": text, "label": [list(span) for span in spans]}


MAKERS = {
    ours: "jsonl",
    label_studio: "label-studio",
    flat_label_studio: "label-studio",
    prodigy: "prodigy",
    doccano: "doccano",
}


@given(st.lists(marked(), min_size=1, max_size=4))
def test_json_lines_are_read_back(tmp_path_factory, given):
    path = tmp_path_factory.mktemp("examples") / "data.jsonl"
    write_jsonl(path, [ours(text, spans) for text, _, spans in given])
    examples = read_examples(path)
    assert examples.sentences == tuple(sentence for _, sentence, _ in given)
    assert (examples.format, examples.dropped.summary()) == ("jsonl", "")
    write_jsonl(path, examples.sentences)
    assert read_examples(path) == examples


@pytest.mark.parametrize("make", MAKERS)
@given(st.lists(marked(), min_size=1, max_size=3))
def test_records_of_every_tool_are_recognised_and_mean_the_same(make, given):
    records = [make(text, spans) for text, _, spans in given]
    examples = parse_examples(json.loads(json.dumps(records)))
    assert examples.format == MAKERS[make]
    assert examples.sentences == tuple(sentence for _, sentence, _ in given)
    assert not examples.dropped


@given(marked())
def test_offsets_in_utf16_units_mean_the_same(given):
    # The last word shows that the offsets are not code points, if the two differ at all.
    text, sentence, spans = given
    whole = f"{text} END"
    spans = [*spans, (len(text) + 1, len(whole), "end")]
    words = (*sentence.words, "END")
    expected = Sentence(words, (*sentence.spans, Span(len(words) - 1, len(words), "end")))
    examples = parse_examples(label_studio(whole, spans, utf16))
    assert examples.sentences == (expected,)
    in_doccano = parse_examples(doccano(whole, [(utf16(whole, s), utf16(whole, e), label) for s, e, label in spans]))
    assert in_doccano.sentences == (expected,)


@given(st.lists(marked(flat_spans), min_size=1, max_size=3))
def test_columns_and_markup_are_recognised(tmp_path_factory, given):
    folder = tmp_path_factory.mktemp("examples")
    sentences = tuple(sentence for _, sentence, _ in given)
    write_columns(folder / "columns", sentences)
    assert read_examples(folder / "columns").format == "conll"
    lines = []
    for sentence in sentences:
        words = ["".join(f"\\{c}" if c in "[]\\" else c for c in word) for word in sentence.words]
        for span in sentence.spans:
            words[span.start] = f"[{words[span.start]}"
            words[span.end - 1] = f"{words[span.end - 1]}]({span.label})"
        lines.append(" ".join(words))
    (folder / "inline").write_text("\n".join([*lines, "[a](b)"]), encoding="utf-8")
    examples = read_examples(folder / "inline")
    assert examples.format == "inline"
    assert examples.sentences == (*sentences, Sentence(("a",), (Span(0, 1, "b"),)))


@given(st.lists(marked(), min_size=1, max_size=3))
def test_brat_s_documents_are_read_back_line_by_line(tmp_path_factory, given):
    folder = tmp_path_factory.mktemp("examples")
    # brat splits at line ends, so each text is one line here
    plain = [(" ".join(s.words), s) for _, s, _ in given]
    document, lines = "", []
    for text, sentence in plain:
        for span in sentence.spans:
            start = len(document) + len(" ".join([*sentence.words[: span.start], ""]))
            surface = " ".join(sentence.words[span.start : span.end])
            lines.append(f"T{len(lines) + 1}\t{span.label} {start} {start + len(surface)}\t{surface}\n")
        document += f"{text}\n"
    (folder / "doc.txt").write_text(document, encoding="utf-8")
    (folder / "doc.ann").write_text("".join(lines), encoding="utf-8")
    examples = read_examples(folder)
    assert examples.sentences == tuple(sentence for _, sentence in plain)
    assert not examples.dropped


@given(texts, st.lists(st.tuples(st.integers(-3, 40), st.integers(-3, 40), labels), max_size=6))
@example("in Oslo", [(2, 7, "city"), (4, 7, "city")])
def test_a_span_is_kept_if_and_only_if_it_holds_a_part_of_a_word_of_the_text(text, spans):
    words = words_of(text)
    examples = parse_examples([ours(text, spans)])
    (sentence,) = examples.sentences
    kept = []
    for start, end, label in spans:
        touched = [word for word in words if word.start < end and start < word.end]
        if 0 <= start < end <= len(text) and touched:
            kept.append((max(start, touched[0].start), min(end, touched[-1].end), label))
    found = {(sentence.offsets[s.start][0], sentence.offsets[s.end - 1][1], s.label) for s in sentence.spans}
    assert found == set(kept)
    assert sum(omission.count for omission in examples.dropped.omissions) == len(spans) - len(kept)


# Nonsense


GOOD = [make("in Oslo 😀 now", [(3, 7, "city"), (10, 13, "time")]) for make in MAKERS]
GOOD[3] |= {"tokens": [{"text": "in"}, {"text": "Oslo"}]}
GOOD[3]["spans"][0] |= {"token_start": 1, "token_end": 1}


def one_line_or_examples(read):
    message = ""
    try:
        assert read().sentences
    except DataError as error:
        message = str(error)
    assert "\n" not in message


formats = st.sampled_from([None, *FORMATS])


@given(st.lists(damaged(GOOD), max_size=3), formats)
def test_damaged_records_give_examples_or_one_line(tmp_path_factory, records, format):
    path = tmp_path_factory.mktemp("examples") / "data.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    one_line_or_examples(lambda: read_examples(path, format))
    one_line_or_examples(lambda: parse_examples(records, format))


@given(
    st.one_of(
        st.binary(max_size=40),
        st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
        scraps,
        json_values.map(json.dumps).map(str.encode),
    ),
    formats,
    st.sampled_from([".txt", ".ann", ".jsonl"]),
)
@example(b"[" * 100_000, None, ".jsonl")
@example(b'{"text": "a", "entities": [' + b"9" * 5000 + b"]}", None, ".jsonl")
@example(b"T1\tx 0 " + b"9" * 5000, None, ".ann")
def test_nonsense_gives_examples_or_one_line(tmp_path_factory, content, format, suffix):
    path = tmp_path_factory.mktemp("examples") / f"data{suffix}"
    path.with_suffix(".txt").write_bytes(b"some text\r\n")
    path.write_bytes(content)
    one_line_or_examples(lambda: read_examples(path, format))


@given(marked())
def test_markup_that_is_written_is_read_as_the_same_spans_but_for_those_that_cross(given):
    text, sentence, spans = given
    again = parse_inline(write_inline(text, spans))
    assert again.words == sentence.words
    assert set(again.spans) <= set(sentence.spans)
    lost = set(sentence.spans) - set(again.spans)
    crossing = [
        {a, b} for a in sentence.spans for b in sentence.spans if a.start < b.start < a.end < b.end
    ]  # of two that cross, one is lost
    assert all(any(one in pair for pair in crossing) for one in lost)
    assert not any(pair <= set(again.spans) for pair in crossing)


@given(st.text("a)(\\\\[] ", min_size=1).filter(str.strip))
def test_a_label_of_any_characters_comes_back(label):
    (span,) = parse_inline(write_inline("Oslo", [(0, 4, label)])).spans
    assert span.label == label.strip()
