import json

import pytest

from spanshot.errors import ConfigError, DataError
from spanshot.formats.dropped import Drop, Dropped, DropReason
from spanshot.formats.examples import parse_examples, read_examples
from spanshot.formats.jsonl import record_of, write_jsonl
from spanshot.types import Sentence, Span


@pytest.fixture
def file(tmp_path):
    """Writes a file and gives its path."""

    def write(content, name="data.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8", newline="")
        return path

    return write


def complaint(path, format=None):
    """Return the error message for a file, without its folder; always one line."""
    with pytest.raises(DataError) as error:
        read_examples(path, format)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(str(path.parent)), message
    return message.removeprefix(f"{path.parent}/")


def ours(text, *spans):
    """One record of our own."""
    return {"text": text, "entities": [dict(zip(("start", "end", "label"), span, strict=True)) for span in spans]}


def only(*records, format=None):
    """The spans of the one sentence that the records give, as text and label; and the summary of what was dropped."""
    examples = parse_examples(records, format)
    (sentence,) = examples.sentences
    spans = [(" ".join(sentence.words[span.start : span.end]), span.label) for span in sentence.spans]
    return spans, examples.dropped.summary()


# Character spans


@pytest.mark.parametrize(
    ("text", "start", "end", "words"),
    [
        ("in Oslo's port", 3, 7, "Oslo"),
        ("in Oslo's port", 3, 9, "Oslo ' s"),
        ("in Oslo.", 3, 8, "Oslo ."),
        ("to  New York ,", 2, 13, "New York"),
        ("to\nOslo\n", 2, 8, "Oslo"),
        ("a\u200bOslo\ufeff b", 1, 7, "Oslo"),
        ("😀 Oslo", 2, 6, "Oslo"),
        ("السلام على عمان", 11, 15, "عمان"),
        ("cafe\u0301 X", 0, 5, "cafe\u0301"),
    ],
)
def test_a_span_is_trimmed_to_the_words_it_holds(text, start, end, words):
    assert only(ours(text, (start, end, "x"))) == ([(words, "x")], "")


@pytest.mark.parametrize(
    ("text", "start", "end", "message"),
    [
        ("in Oslo", 3, 8, "left out 1 span (outside the text): example 1, entity 1 'Oslo' (x)"),
        ("in Oslo", -4, 7, "left out 1 span (outside the text): example 1, entity 1 'in Oslo' (x)"),
        ("in Oslo", 3, 3, "left out 1 span (contains no word): example 1, entity 1 '' (x)"),
        ("in Oslo", 7, 3, "left out 1 span (contains no word): example 1, entity 1 '' (x)"),
        ("in  Oslo", 2, 4, "left out 1 span (contains no word): example 1, entity 1 '  ' (x)"),
    ],
)
def test_a_span_outside_the_text_or_without_a_word_is_left_out_with_a_reason(text, start, end, message):
    assert only(ours(text, (start, end, "x"))) == ([], message)


@pytest.mark.parametrize(
    ("text", "start", "end", "words"),
    [
        ("take 500mg now", 5, 8, ("take", "500", "mg", "now")),
        ("in Oslo", 4, 7, ("in", "O", "slo")),
        ("in Oslo", 4, 6, ("in", "O", "sl", "o")),
        ("cafe\u0301 X", 0, 4, ("cafe", "\u0301", "X")),
    ],
)
def test_a_span_that_ends_inside_a_word_cuts_it(text, start, end, words):
    assert only(ours(text, (start, end, "x"))) == ([(text[start:end], "x")], "")
    assert parse_examples([ours(text, (start, end, "x"))]).sentences[0].words == words


@pytest.mark.parametrize("label", [None, "", "  ", "O"])
def test_a_span_without_a_label_is_left_out(label):
    spans, message = only(ours("in Oslo", (3, 7, label)))
    assert spans == []
    assert message == "left out 1 span (no label): example 1, entity 1 3..7"


def test_labels_are_trimmed_and_doubles_are_one():
    spans, message = only(ours("in Oslo", (3, 7, "city"), (2, 7, " city "), (3, 7, "place")))
    assert spans == [("Oslo", "city"), ("Oslo", "place")]
    assert message == ""


def test_spans_may_nest_and_cross():
    record = ours("New York Times Square", (0, 14, "paper"), (0, 8, "city"), (9, 21, "place"))
    assert only(record)[0] == [("New York", "city"), ("New York Times", "paper"), ("Times Square", "place")]


def test_offsets_of_our_own_records_are_code_points_even_where_utf16_would_fit():
    utf16 = ours("😀 Oslo", (3, 7, "city"))
    assert only(utf16) == ([], "left out 1 span (outside the text): example 1, entity 1 'slo' (city)")
    utf16["entities"][0]["text"] = "Oslo"  # now there is proof
    assert only(utf16) == ([("Oslo", "city")], "")


def test_an_entity_s_own_text_is_checked():
    record = ours("Oslo or Rome", (0, 4, "city"), (8, 12, "city"))
    record["entities"][0]["text"] = "Rome"
    record["entities"][1]["text"] = "Rome"
    message = "left out 1 span (text does not match): example 1, entity 1 'Rome' (city)"
    assert only(record) == ([("Rome", "city")], message)


def test_a_text_of_more_than_a_thousand_words_is_cut_at_line_ends_outside_of_spans():
    text = "\n".join(["w " * 400, "w " * 400, "w " * 399 + "New", "York " + "w " * 9])
    start = text.index("New")
    examples = parse_examples([ours(text, (start, start + 8, "city"))])
    assert [len(sentence) for sentence in examples.sentences] == [400, 400, 410]
    assert examples.sentences[2].spans == (Span(399, 401, "city"),)
    assert not examples.dropped


def test_a_line_of_more_than_a_thousand_words_is_left_out():
    examples = parse_examples([ours("w " * 1001 + "\nOslo"), ours("w " * 1000)])
    assert [len(sentence) for sentence in examples.sentences] == [1, 1000]
    assert examples.dropped.summary() == "left out 1 record (too long): example 1"


def test_records_without_text_are_left_out_and_those_without_a_span_kept():
    records = [{"entities": []}, ours(""), ours(" \n"), ours(None), ours("\u200b"), ours("plain")]
    examples = parse_examples(records)
    assert examples.sentences == (Sentence(("plain",)),)
    assert examples.dropped.count(DropReason.NO_TEXT) == 5
    assert examples.dropped.summary() == "left out 5 records (no text): example 1; example 2; example 3; and 2 more"


# What was dropped


def test_nothing_dropped_is_false_and_has_no_summary():
    assert not Dropped()
    assert Dropped().summary() == ""


def test_drops_are_counted_by_reason_with_the_first_few_shown():
    drops = [Drop(DropReason.INSIDE_WORD, f"a:{n}", "'x' (y)") for n in range(1234)]
    dropped = Dropped.of([*drops, Drop(DropReason.NO_TEXT, "a:9")])
    assert dropped
    assert (dropped.count("inside a word"), dropped.count("no text"), dropped.count("no label")) == (1234, 1, 0)
    assert dropped.summary().split("\n") == [
        "left out 1,234 spans (inside a word): a:0 'x' (y); a:1 'x' (y); a:2 'x' (y); and 1,231 more",
        "left out 1 record (no text): a:9",
    ]


def test_long_texts_and_line_ends_do_not_spoil_a_summary():
    message = only(ours("wo\nrd" * 50, (1, 200, "a\nb")))[1]
    assert "\n" not in message
    assert len(message) < 120


# Label Studio


def task(text, *values, **more):
    """A task with one annotation; values are regions."""
    results = [{"type": "labels", "to_name": "text", "from_name": "label", "value": value} for value in values]
    return {"id": 1, "data": {"text": text}, "annotations": [{"id": 2, "result": results}], **more}


def region(start, end, text=None, *labels):
    return {"start": start, "end": end, "labels": list(labels), **({} if text is None else {"text": text})}


@pytest.mark.parametrize(
    ("text", "start", "end", "surface"),
    [
        ("💩Oslo 💩", 1, 5, "Oslo"),  # code points
        ("💩Oslo 💩", 2, 6, "Oslo"),  # UTF-16
        ("💩Oslo 💩", 2, 6, None),  # UTF-16, since only that gives a whole word
        ("a\r\nOslo", 2, 6, "Oslo"),  # a browser's line ends
        ("💩\r\nOslo", 4, 8, "Oslo"),
        ("💩\r\nOslo", 3, 7, "Oslo"),
        ("💩\r\nOslo", 2, 6, "Oslo"),
        ("Oslo\nnow", 0, 8, "Oslo now"),
        ("Oslo\nnow", 0, 8, "Oslonow"),
    ],
)
def test_label_studio_s_offsets_are_checked_against_the_marked_text(text, start, end, surface):
    spans, message = only(task(text, region(start, end, surface, "city")))
    assert spans == [("Oslo now" if "now" in text else "Oslo", "city")]
    assert message == ""


def test_a_region_whose_text_stands_elsewhere_is_left_out():
    message = "left out 1 span (text does not match): example 1, result 1 'Rome' (city)"
    assert only(task("💩Oslo", region(1, 5, "Rome", "city"))) == ([], message)


def test_all_offsets_of_a_text_are_in_the_unit_that_most_fit():
    record = task("😀.!. Oslo", region(3, 4, None, "x"))
    assert only(record) == ([(".", "x")], "")  # code points, since both would do
    record = task("😀.!. Oslo", region(3, 4, None, "x"), region(6, 10, None, "city"))
    assert only(record) == ([("!", "x"), ("Oslo", "city")], "")


def test_a_region_may_have_several_labels_or_none():
    spans, message = only(task("in Oslo", region(3, 7, "Oslo", "city", "place"), region(0, 2, "in")))
    assert spans == [("Oslo", "city"), ("Oslo", "place")]
    assert message == "left out 1 span (no label): example 1, result 2 'in'"


def test_regions_of_html_and_dialogues_are_left_out_and_other_results_ignored():
    record = task("in Oslo", {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "text": "Oslo", "labels": ["x"]})
    record["annotations"][0]["result"] += [
        {"type": "relation", "from_id": "a", "to_id": "b"},
        {"type": "choices", "value": {"choices": ["travel"]}},
    ]
    assert only(record) == ([], "left out 1 span (not in plain text): example 1, result 1 'Oslo'")


def test_the_ground_truth_or_the_newest_annotation_is_used():
    def annotation(label, **more):
        return {"result": [{"type": "labels", "value": region(0, 4, "Oslo", label)}], **more}

    old, new = annotation("old", created_at="2021-01-02"), annotation("new", created_at="2022-01-01")
    skipped = annotation("skipped", created_at="2023-01-01", was_cancelled=True)
    message = "left out 1 record (annotated again): example 1"
    long_ago = annotation("skipped", created_at="2024-01-01", skipped=True)
    for order in ([old, new, skipped, long_ago], [skipped, new, old]):
        assert only(task("Oslo") | {"annotations": order}) == ([("Oslo", "new")], message)
    truth = annotation("truth", created_at="2020-01-01", ground_truth=True)
    spans, message = only(task("Oslo") | {"annotations": [old, truth, new]})
    assert spans == [("Oslo", "truth")]
    assert message == "left out 2 records (annotated again): example 1; example 1"


def test_tasks_that_nobody_annotated_are_left_out_and_unmarked_ones_kept():
    unread, skipped = task("unread"), task("skipped")
    unread["annotations"] = []
    skipped["annotations"][0]["was_cancelled"] = True
    examples = parse_examples([unread, skipped, task("unmarked")])
    assert [sentence.words for sentence in examples.sentences] == [("unmarked",)]
    assert examples.dropped.summary().split("\n") == [
        "left out 1 record (not annotated): example 1",
        "left out 1 record (not accepted): example 2",
    ]


def test_old_completions_and_other_names_of_the_text_are_read():
    record = {"data": {"url": "x", "tweet": "in Oslo", "note": "a longer text of no concern"}}
    result = {"type": "labels", "to_name": "tweet", "value": region(3, 7, "Oslo", "city")}
    record["completions"] = [{"result": [result]}]
    assert only(record) == ([("Oslo", "city")], "")
    result["to_name"] = "txt"
    record["data"] = {"url": "x", "body": "in Oslo"}
    assert only(record) == ([("Oslo", "city")], "")
    record["data"] = {"page": 3}
    with pytest.raises(DataError, match=r"^examples: no example to learn from: left out 1 record \(no text\)"):
        parse_examples(record)


def test_json_min_gives_the_newest_annotation_of_each_task():
    def flat(id, annotation, *regions):
        return {"id": id, "text": "in Oslo", "ner": list(regions), "topic": "a", "annotation_id": annotation}

    examples = parse_examples(
        [
            flat(1, 12, region(3, 7, "Oslo", "new")),
            flat(1, 11, region(3, 7, "Oslo", "old")),
            flat(2, 13),
            flat(3, None),
        ]
    )
    assert examples.format == "label-studio"
    assert examples.labels == {"new": 1}
    assert len(examples.sentences) == 2
    assert examples.dropped.summary().split("\n") == [
        "left out 1 record (annotated again): example 2",
        "left out 1 record (not annotated): example 4",
    ]


# doccano


@pytest.mark.parametrize(
    "record",
    [
        {"id": 1, "text": "in Oslo", "label": [[3, 7, "city"]]},
        {"id": 1, "text": "in Oslo", "labels": [[3, 7, "city"]], "meta": {}},
        {"id": 1, "data": "in Oslo", "label": [[3, 7, "city"]]},
        {"doc_id": 1, "text": "in Oslo", "entities": [[3, 7, "city"]], "username": "ann"},
        {"text": "in Oslo", "entities": [{"id": 9, "label": "city", "start_offset": 3, "end_offset": 7}]},
        {"text": "😀😀 Oslo", "label": [[5, 9, "city"]]},  # UTF-16
        {"text": "😀😀 Oslo", "label": [[3, 7, "city"]]},  # code points
        {"text": "a\r\nOslo", "label": [[2, 6, "city"]]},  # a line end is one grapheme
    ],
)
def test_all_of_doccano_s_layouts_are_read(record):
    assert parse_examples(record).format == "doccano"
    assert only(record) == ([("Oslo", "city")], "")


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[3, 7]], "span 1: expected [start, end, label] or an object with 'start_offset'; found a list"),
        (["city"], "span 1: expected [start, end, label] or an object with 'start_offset'; found a string"),
        ([[3, 7, 4]], "span 1: the label is a number, not a name; export as JSONL with the labels' texts"),
        ([[3, "7", "x"]], "span 1: the value of 'end' must be a whole number; found a string"),
        ({}, "the value of 'label' must be a list; found an object"),
    ],
)
def test_malformed_doccano_spans_are_named(file, spans, message):
    good = {"text": "a", "label": []}
    path = file(f"{json.dumps(good)}\n{json.dumps({'text': 'in Oslo', 'label': spans})}\n", "d.jsonl")
    assert complaint(path, "doccano") == f"d.jsonl:2: {message}"


# Prodigy


def test_only_what_was_accepted_is_used():
    def answered(*answer, **more):
        record = {"text": "in Oslo", "spans": [{"start": 3, "end": 7, "label": "city", **more}]}
        return record | dict.fromkeys(["answer"] if answer else [], *answer)

    examples = parse_examples([answered("accept"), answered("reject"), answered("ignore"), answered()])
    assert examples.format == "prodigy"
    assert examples.labels == {"city": 2}
    assert examples.dropped.summary() == "left out 2 records (not accepted): example 2; example 3"
    message = "left out 1 span (not accepted): example 1, span 1 3..7"
    assert only(answered("accept", answer="ignore")) == ([], message)
    rejecting = parse_examples([answered("accept", answer="reject")]).sentences[0]
    assert (rejecting.spans, rejecting.rejected) == ((), (Span(1, 2, "city"),))


def test_prodigy_s_spans_are_checked_against_their_text_or_tokens():
    tokens = [{"text": "in"}, {"text": "Oslo"}]
    span = {"start": 3, "end": 7, "label": "city", "token_start": 1, "token_end": 1}
    assert only({"text": "in Oslo", "tokens": tokens, "spans": [span]}) == ([("Oslo", "city")], "")
    moved = span | {"token_start": 0, "token_end": 0}
    message = "left out 1 span (text does not match): example 1, span 1 'in' (city)"
    assert only({"text": "in Oslo", "tokens": tokens, "spans": [moved]}) == ([], message)
    message = "left out 1 span (text does not match): example 1, span 1 'Rome' (city)"
    assert only({"text": "in Oslo", "tokens": tokens, "spans": [span | {"text": "Rome"}]}) == ([], message)
    message = "left out 1 span (outside the text): example 1, span 1 'slo' (city)"
    assert only({"text": "😀 Oslo", "spans": [{"start": 3, "end": 7, "label": "city"}]}) == ([], message)
    wild = span | {"token_start": 5, "token_end": 9}
    assert only({"text": "in Oslo", "tokens": tokens, "spans": [wild]}) == ([("Oslo", "city")], "")


def test_a_prodigy_record_needs_no_spans():
    assert only({"text": "in Oslo", "answer": "accept", "_input_hash": 1}) == ([], "")
    assert only({"text": "in Oslo", "answer": "accept", "spans": None}) == ([], "")


# brat


@pytest.fixture
def brat(file):
    """Reads a document of brat's."""

    def read(text, *lines):
        file(text if isinstance(text, bytes) else text.encode(), "d/doc.txt")
        return read_examples(file("".join(f"{line}\n" for line in lines), "d/doc.ann").parent)

    return read


def marks(examples):
    return [(" ".join(s.words[x.start : x.end]), x.label) for s in examples.sentences for x in s.spans]


def test_every_line_of_a_brat_document_is_an_example_unless_a_span_crosses_its_end(brat):
    examples = brat("in Oslo\n\nin New\nYork now\n", "T1\tcity 3 7\tOslo", "T2\tcity 12 15;16 20\tNew York")
    assert [sentence.words for sentence in examples.sentences] == [("in", "Oslo"), ("in", "New", "York", "now")]
    assert marks(examples) == [("Oslo", "city"), ("New York", "city")]
    assert not examples.dropped


@pytest.mark.parametrize("offsets", ["0 5;11 16", "11 16;0 5", "0 5;100 105"])
def test_a_span_in_pieces_is_left_out(brat, offsets):
    examples = brat("alpha and actin\n", f"T1\tprotein {offsets}\talpha actin", "T2\tprotein 0 5\talpha")
    assert marks(examples) == [("alpha", "protein")]
    assert examples.dropped.summary() == "left out 1 span (discontinuous): doc.ann:1 'alpha actin' (protein)"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (b"a\r\nOslo", 2),
        (b"a\r\nOslo", 3),
        (b"\xef\xbb\xbfa Oslo", 2),
        (b"\xef\xbb\xbfa Oslo", 3),
        ("😀 Oslo".encode(), 2),
        ("😀 Oslo".encode(), 3),
    ],
)
def test_brat_s_offsets_are_checked_against_the_marked_text(brat, text, start):
    examples = brat(text, f"T1\tcity {start} {start + 4}\tOslo")
    assert marks(examples) == [("Oslo", "city")]
    assert not examples.dropped


def test_a_brat_span_without_its_text_is_read_and_one_with_another_text_is_not(brat):
    examples = brat("Oslo Rome", "T1\tcity 0 4", "T2\tcity 5 9\tOslo")
    assert marks(examples) == [("Oslo", "city")]
    assert examples.dropped.summary() == "left out 1 span (text does not match): doc.ann:2 'Oslo' (city)"


@pytest.mark.parametrize(
    "line", ["T1\tcity", "T1 city 0 4 Oslo", "T1\tcity 0\tOslo", "T1\tcity 0 4;\tOslo", "nonsense", "Rx\tnonsense"]
)
def test_a_malformed_brat_line_is_named(brat, file, line):
    with pytest.raises(DataError, match=r"doc.ann:2: found '.*'; expected .*T1<tab>") as error:
        brat("Oslo", "T1\tcity 0 4\tOslo", line)
    assert "\n" not in str(error.value)


def test_either_file_of_a_pair_will_do_and_folders_are_searched_through(file, tmp_path):
    for name in ("b", "a"):
        file(f"{name} Oslo", f"{name}/doc.txt")
        file("T1\tcity 2 6\tOslo\n", f"{name}/doc.ann")
    file("no annotations of this", "a/other.txt")
    assert read_examples(tmp_path / "a" / "doc.txt") == read_examples(tmp_path / "a" / "doc.ann")
    assert [s.words[0] for s in read_examples(tmp_path).sentences] == ["a", "b"]


def test_half_a_pair_and_a_folder_of_something_else_are_named(file, tmp_path):
    assert complaint(file("T1\tcity 0 4\tOslo\n", "doc.ann")).startswith("doc.txt: no such file")
    assert complaint(file("Oslo", "text.txt"), "brat").startswith("text.ann: no such file")
    (tmp_path / "folder").mkdir()
    assert complaint(tmp_path / "folder").startswith("folder: the folder contains no .ann file; name a folder of .ann")


# Files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "data.txt: is empty; expected labelled examples, such as lines of [Apple](ORG) grew."),
        (" \r\n\n", "data.txt: is empty;"),
        ("just words\nand more\n", "data.txt: cannot tell the format: no JSON, no line has [marked text](LABEL), few"),
        ([{"a": 1, "b": 2}], "data.txt: cannot tell the format: the JSON records have the keys 'a', 'b'; name it with"),
        ([], "data.txt: cannot tell the format: the JSON records have the keys none; name it with --format NAME"),
        (
            {"text": "see [this](link)"},
            "data.txt: cannot tell the format: the JSON records have the keys 'text'; name it with",
        ),
        ('{"text": "a", "entities": []}\n{"text": "b",', "data.txt:2: malformed JSON at character 14"),
        ('[\n{"text": "a", "entities": []},\n{"text": "b",', "data.txt:3: malformed JSON at character 14"),
        ('{\n"text": "a"\n', "data.txt:3: malformed JSON"),
        ('[{\n"text": "see [this](link)",\n"entities": [', "data.txt:3: malformed JSON"),
        ('{"text": "a", "entities": []}\n7\n', "data.txt:2: found a whole number; expected an object with the key"),
        ([ours("a"), {"text": "b"}], "data.txt: record 2: the key 'entities' is missing; write \"entities\": [] where"),
        ([ours("a"), ours("b", (0, "1", "x"))], "data.txt: record 2, entity 1: the value of 'end' must be a whole"),
        ([ours("a"), ours("b", (0, 1, 7))], "data.txt: record 2, entity 1: the value of 'label' must be a string"),
        ([ours("a"), ours(7)], "data.txt: record 2: the value of 'text' must be a string; found a whole number"),
        ('{"text": "a", "entities": [' + "9" * 5000 + "]}", "data.txt:1: JSON that cannot be read"),
        ("a [Rome](city)\nb [Rome] c\n", "data.txt:2: character 8: ']' must be followed by a label"),
        ("a\tO\nb\tB-x\nc\n", "data.txt:3: found 1 columns; expected 2"),
        (b"[Rome](city) caf\xe9\n", "data.txt:1: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        ([ours("")], "data.txt: no example to learn from: left out 1 record (no text): data.txt, record 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_place_and_a_remedy(file, content, message):
    assert complaint(file(content)).startswith(message)


def test_what_cannot_be_told_is_told_how_to_be_named(file):
    message = complaint(file("just words"))
    assert message.endswith(
        "name it with --format NAME (one of inline, jsonl, conll, label-studio, doccano, prodigy, brat, spacy, table)"
    )
    assert read_examples(file("just words"), "inline").sentences == (Sentence(("just", "words")),)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    assert complaint(tmp_path / "no.jsonl") == "no.jsonl: no such file; check the path"
    (tmp_path / "folder").mkdir()
    assert complaint(tmp_path / "folder", "jsonl") == "folder: is a directory; name a file in it"


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("[{1}](number) is one", "inline"),
        ("{x} [Oslo](city)", "inline"),
        ("[[New York](city) Times](paper)", "inline"),
        ("plain\n[Oslo](city)", "inline"),
        ("{ plain\n[Oslo](city)", "inline"),
        ('{"text": "see [this](link)", "answer": "accept"}', "prodigy"),
        ("{ O\nOslo B-city\n} O\n", "conll"),
        ("Oslo\tplace-city\nis\tO\ncold\tO\n", "conll"),
        ("-DOCSTART- -X- O O\n\nOslo NNP I-NP B-city\n", "conll"),
        ("Oslo B-city\n[](x) O\n", "conll"),
        ("blood type O\ntype O\n[Oslo](city)\n", "inline"),
        ('{\n "text": "a",\n "entities": []\n}', "jsonl"),
        ('\n{"text": "a", "entities": []}\n\n{"text": "b", "entities": []}\n', "jsonl"),
        ([{"text": "a", "entities": []}, {"text": "Oslo", "entities": [[0, 4, "city"]]}], "doccano"),
    ],
)
def test_formats_are_told_apart(file, content, format):
    assert read_examples(file(content)).format == format


def test_an_unknown_format_is_answered_with_the_nearest(file):
    with pytest.raises(ConfigError, match=r"unknown format 'prodgy': choose one of inline, .*mean 'prodigy'\?"):
        read_examples(file("x"), "prodgy")
    with pytest.raises(ConfigError, match=r"mean 'jsonl'\?"):
        parse_examples(["x"], "json")
    assert read_examples(file([task("Oslo")]), "Label_Studio").format == "label-studio"


# In memory


def test_examples_in_memory_may_be_mixed_and_keep_their_order():
    given = Sentence(("Bergen", "too"), (Span(0, 1, "city"),))
    record = {"text": "Rome fell", "entities": ({"start": 0, "end": 4, "label": "city"},)}
    examples = parse_examples(["[Oslo](city) is cold", record, given, "plain", ours("x")])
    assert [sentence.words[0] for sentence in examples.sentences] == ["Oslo", "Rome", "Bergen", "plain", "x"]
    assert examples.labels == {"city": 3}
    assert examples.format == "inline, jsonl, sentences"
    assert not examples.dropped


def test_one_example_need_not_be_in_a_list():
    assert parse_examples("[Oslo](city)").sentences == parse_examples(["[Oslo](city)"]).sentences
    assert parse_examples(ours("Oslo")).sentences == parse_examples(Sentence(("Oslo",))).sentences


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "examples: no example to learn from: expected labelled sentences"),
        (["a", 7], "example 2: found int; expected text with [marks](LABEL), a record or a Sentence"),
        (["a", "[b"], "example 2: '[' before 'b' is never closed"),
        (["a", {"words": 1}], "example 2: the key 'entities' is missing"),
        (["a", {"text": {1, 2}}], "example 2: the record must be plain JSON: Object of type set"),
        (["", " "], "examples: no example to learn from: left out 2 records (no text): example 1; example 2"),
    ],
)
def test_bad_examples_in_memory_are_named_by_their_number(items, message):
    with pytest.raises(DataError) as error:
        parse_examples(items)
    assert str(error.value).startswith(message)


def test_the_name_of_examples_in_memory_can_be_chosen():
    with pytest.raises(DataError, match=r"^item 1: found float"):
        parse_examples([0.5], name="item")


# Writing


def test_words_are_parted_by_spaces_when_written():
    sentence = Sentence(("New", "York", "!"), (Span(0, 2, "city"), Span(2, 3, "mark")))
    assert record_of(sentence) == ours("New York !", (0, 8, "city"), (9, 10, "mark"))


def test_text_that_utf8_cannot_hold_is_escaped(tmp_path):
    write_jsonl(tmp_path / "out.jsonl", [ours("a \ud800 b", (0, 1, "x"))])
    written = (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert "\\ud800" in written
    assert json.loads(written)["text"] == "a \ud800 b"


def test_json_lines_carry_rejected_spans(tmp_path):
    record = {
        **ours("see Oslo Street in Rome", (19, 23, "city")),
        "rejected": [{"start": 4, "end": 8, "label": "city"}],
    }
    (sentence,) = parse_examples([record]).sentences
    assert sentence.spans == (Span(4, 5, "city"),)
    assert sentence.rejected == (Span(1, 2, "city"),)
    assert record_of(sentence) == record
    write_jsonl(tmp_path / "out.jsonl", [sentence])
    assert read_examples(tmp_path / "out.jsonl").sentences == (sentence,)


def test_a_span_that_is_marked_and_rejected_is_an_error():
    record = {**ours("in Oslo", (3, 7, "city")), "rejected": [{"start": 3, "end": 7, "label": "city"}]}
    with pytest.raises(DataError, match="both marked and rejected as 'city'"):
        parse_examples([record])
