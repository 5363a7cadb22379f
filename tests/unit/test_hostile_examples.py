"""Files that no tool should write give examples or an error of one line, never a traceback."""

import json
import os
import threading
from pathlib import Path

import pytest

from spanshot.errors import DataError
from spanshot.formats.examples import examples_of, parse_examples, read_examples
from spanshot.formats.files import read_text
from spanshot.formats.json_values import JsonRecords
from spanshot.formats.jsonl import write_jsonl
from spanshot.types import Sentence, Span


@pytest.fixture
def file(tmp_path):
    """Writes bytes to a file and returns its path."""

    def write(content, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def problem(call):
    """The error of a call, of one line."""
    with pytest.raises(DataError) as error:
        call()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    return str(error.value)


def ours(text, *entities):
    return {"text": text, "entities": list(entities)}


OSLO = {"start": 3, "end": 7, "label": "city"}


# JSON


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (ours("in Oslo \ud800", OSLO), r"the value of 'text' has half of a surrogate pair (\ud800) at character 9"),
        (ours("in Oslo", OSLO | {"label": "a\udfff"}), r"the value of 'label' has half of a surrogate pair (\udfff)"),
    ],
)
def test_half_a_surrogate_pair_is_named_with_its_line(file, record, message):
    path = file(f"{json.dumps(ours('a'))}\n{json.dumps(record)}\n")
    assert f"data.txt:2: {message}" in problem(lambda: read_examples(path)).replace("entity 1: ", "")
    assert message in problem(lambda: parse_examples([ours("a"), record]))


def test_half_a_surrogate_pair_outside_of_text_and_labels_does_no_harm(file):
    record = {**ours("in Oslo", OSLO), "note": "\ud83d", "\ud83d": 1}
    assert read_examples(file(json.dumps(record))).labels == {"city": 1}


def test_half_a_surrogate_pair_in_markup_is_an_error_of_the_example():
    assert problem(lambda: parse_examples(["a", "[b\ud800](x)"])).startswith("example 2: the text has half of a surr")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
@pytest.mark.parametrize("format", [None, "jsonl", "prodigy"])
def test_json_nested_deeply_is_an_error_of_one_line(file, content, format):
    message = problem(lambda: read_examples(file(content), format))
    assert "JSON nested too deeply to be read" in message or (format is None and "cannot tell the format" in message)


def test_records_nested_just_less_deeply_are_read(file):
    deep = "[" * 900 + "]" * 900
    records = [
        f'{{"id": {deep}, "data": {{"text": "in Oslo", "x": {deep}}}, "annotations": [{{"created_at": {deep}, '
        f'"result": []}}, {{"created_at": "2020", "result": []}}]}}',
        f'{{"id": {deep}, "text": "in Oslo", "annotation_id": 3, "x": {deep}}}',
    ]
    for record in records:
        assert read_examples(file(f"{record}\n{record}\n")).format == "label-studio"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("9" * 5000, "a number has too many digits"),
        ("NaN", "NaN is not a JSON number"),
        ("-Infinity", "-Infinity is not a JSON number"),
    ],
)
@pytest.mark.parametrize("content", ['{"text": "a", "entities": [], "x": %s}', '[{"text": "a", "entities": [%s]}]'])
def test_numbers_that_json_does_not_have_are_an_error_of_one_line(file, content, value, message):
    assert problem(lambda: read_examples(file(content % value))).endswith(
        f"data.txt:1: JSON that cannot be read: {message}"
    )


def test_a_key_that_occurs_twice_is_an_error(file):
    path = file('{"text": "a", "entities": []}\n{"text": "b", "entities": [], "text": "c"}\n')
    assert problem(lambda: read_examples(path)).endswith(
        "data.txt:2: JSON that cannot be read: the key 'text' occurs twice in one object"
    )


@pytest.mark.parametrize("offset", [10**30, -(10**30), 10**4000])
def test_enormous_offsets_lie_outside_of_the_text(file, offset):
    examples = read_examples(file(json.dumps(ours("in Oslo", OSLO | {"end": offset}))))
    assert examples.dropped.count("outside the text") == 1
    unlabelled = read_examples(file(json.dumps(ours("in Oslo", OSLO | {"end": offset, "label": ""}))))
    assert len(unlabelled.dropped.summary()) < 200


@pytest.mark.parametrize(
    "record",
    [
        {
            "text": "a",
            "tokens": [{}],
            "spans": [{"start": 0, "end": 1, "label": "x", "token_start": 0, "token_end": 10**30}],
        },
        {"annotation_id": 1, "text": "a", "a\nb": [{"labels": ["x"], "start": 0, "end": "9"}]},
        {"annotation_id": 1, "text": "a", "a\nb": [{"labels": ["x"], "start": 0, "end": 9}]},
        {"data": {"text": "a"}, "annotations": [{"result": [{"type": "labels", "value": {"labels": "x"}}]}]},
        {"a\nb" * 100: 1, "entities": 3},
    ],
)
def test_odd_records_give_messages_of_one_line(file, record):
    try:
        examples = read_examples(file(json.dumps([record])))
    except DataError as error:
        error_message = str(error)
    else:
        error_message = examples.dropped.summary()
    assert "\n" not in error_message
    assert len(error_message) < 1000


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[]", []),
        (" [ 1 , [2] ]\n", [1, [2]]),
        ('{"a": 1}\n\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ('{\n"a": 1}', [{"a": 1}]),
    ],
)
def test_records_are_those_of_a_list_an_object_or_lines(text, values):
    records = JsonRecords("x", text)
    assert [value for _, value in records] == values
    assert [value for _, value in records] == values, "records can be read more than once"


@pytest.mark.parametrize("text", ["[1", "[1,]", "[1 2]", "[,]", "[1] 2", "[", "[1,,2]", '["a\n"]'])
def test_a_malformed_list_is_an_error_as_json_has_it(text):
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    assert f"x:{expected.value.lineno}: malformed JSON at character" in problem(lambda: list(JsonRecords("x", text)))


# Files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[Oslo](city)".encode("utf-16"), "data.txt: looks like UTF-16; save the file as UTF-8"),
        ("[Oslo](city)".encode("utf-32"), "data.txt: looks like UTF-32; save the file as UTF-8"),
        (
            "a\n[Oslo](city)".encode("utf-16-le"),
            "data.txt:1: has a null byte, which text does not have; remove it, or save the file as UTF-8",
        ),
        (
            b"[Oslo](city)\nb\0\n",
            "data.txt:2: has a null byte, which text does not have; remove it, or save the file as UTF-8",
        ),
        (b"[Oslo](city)\r\nb\rc\xe9\n", "data.txt:3: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        (b"[Oslo](city) \xf0\x9f\x98", "data.txt:1: byte 0xf0 is not UTF-8; save the file as UTF-8"),
        (b"a\n" * 1_000_000 + b"\xff", "data.txt:1000001: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"", "data.txt: is empty; expected labelled examples, such as lines of [Apple](ORG) grew."),
        (b"\xef\xbb\xbf \r\n\r", "data.txt: is empty; expected labelled examples, such as lines of [Apple](ORG) grew."),
    ],
)
def test_files_that_are_not_utf8_text_are_named_with_the_line(file, content, message):
    assert problem(lambda: read_examples(file(content))).endswith(message)


@pytest.mark.parametrize(
    "name", ["a\0b", "a\0b.txt", "a\0b.ann", "\ud800", "x" * 5000, "x" * 5000 + ".txt", "", ".", "/"]
)
@pytest.mark.parametrize("format", [None, "inline", "brat"])
def test_names_that_no_file_can_have_are_an_error_of_one_line(name, format, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as error:
        read_examples(name if name != "/" else tmp_path.anchor, format if name != "/" else "inline")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("method", ["open", "is_dir"])
def test_an_unreadable_file_is_an_error_of_one_line(file, monkeypatch, method):
    path = file("[Oslo](city)")

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, method, refuse)
    assert problem(lambda: read_examples(path)).endswith("data.txt: cannot be read: Permission denied")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes exist on Unix only")
@pytest.mark.parametrize(
    ("content", "format"),
    [
        (b"in [Oslo](city)\n", "inline"),
        (b"in O\nOslo B-city\n", "conll"),
        (json.dumps(ours("in Oslo", OSLO)).encode(), "jsonl"),
    ],
)
def test_a_named_pipe_is_read_once(tmp_path, content, format):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    examples = read_examples(pipe)
    writer.join()
    assert (examples.format, examples.labels) == (format, {"city": 1})


@pytest.mark.parametrize("size", [2**20 - 1, 2**20, 2**20 + 1])
@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_and_characters_between_two_chunks_are_read_whole(file, size, end):
    text = f"{'a' * (size - 1)}{end}é😀{end}b"
    assert read_text(file(text)) == text.replace("\r\n", "\n").replace("\r", "\n")
    assert read_text(file(text), exact=True) == text


# Line ends and brackets


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_columns_may_end_their_lines_with_carriage_returns(file, end):
    path = file(end.join(["in O", "Oslo B-city", "", "Rome B-city", "fell O", "", ""]))
    expected = (Sentence(("in", "Oslo"), (Span(1, 2, "city"),)), Sentence(("Rome", "fell"), (Span(0, 1, "city"),)))
    examples = read_examples(path)
    assert (examples.format, examples.sentences) == ("conll", expected)


def test_columns_may_mix_their_line_ends(file):
    path = file("in O\r\rRome B-city\n\nOslo B-city\r\n\r\nBergen\tB-city\r")
    assert [s.words for s in read_examples(path).sentences] == [("in",), ("Rome",), ("Oslo",), ("Bergen",)]


@pytest.mark.parametrize(
    ("markup", "label"),
    [
        ("[Paris](place (city))", "place (city)"),
        ("[Paris](a (b (c)) d)", "a (b (c)) d"),
        (r"[Paris](a \(b)", "a (b"),
        (r"[Paris](a \) b)", "a ) b"),
        ("[Paris](()())", "()()"),
    ],
)
def test_brackets_in_labels_come_in_pairs_or_are_escaped(markup, label):
    (sentence,) = parse_examples([f"{markup} (in spring)"]).sentences
    assert sentence.spans == (Span(0, 1, label),)
    assert sentence.text == "Paris (in spring)"


def test_a_bracket_without_a_partner_is_named_with_a_remedy():
    assert r"'(a (b) c' is never closed; add ')', or write \(" in problem(lambda: parse_examples(["[Paris](a (b) c"]))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "lines",
    [
        ["[Oslo](city) is cold", "", "[Rome](city) is not"],
        ["in O", "Oslo B-city", "", "Rome B-city"],
        [json.dumps(ours("in Oslo", OSLO)), json.dumps(ours("b"))],
        ["[", json.dumps(ours("in Oslo", OSLO)), "]"],
        ["[Oslo](city)", ""],
    ],
)
def test_a_string_of_several_lines_is_read_like_a_file_with_the_same_content(file, lines, end):
    text = end.join(lines)
    in_memory, on_disk = parse_examples(text), read_examples(file(text))
    assert in_memory == on_disk
    assert [s.text for s in in_memory.sentences] == [s.text for s in on_disk.sentences]


def test_a_string_is_a_path_unless_it_holds_markup_or_a_line_end(file):
    path = file("[Oslo](city)")
    assert examples_of(str(path)) == examples_of(path) == examples_of("[Oslo](city)") == examples_of(["[Oslo](city)"])
    assert len(examples_of("Oslo B-city\n\nRome B-city").sentences) == 2
    assert problem(lambda: examples_of("Oslo")) == "Oslo: no such file; check the path"


@pytest.mark.parametrize("examples", [None, 7, True, 0.5, b"[Oslo](city)", [b"[Oslo](city)"], [["[Oslo](city)"]]])
def test_examples_of_another_type_are_an_error_of_one_line(examples):
    assert "; expected " in problem(lambda: examples_of(examples))


def test_a_string_of_several_lines_in_a_list_is_one_example():
    (sentence,) = parse_examples(["[Oslo](city)\nRome"]).sentences
    assert sentence.text == "Oslo\nRome"


# Text is written back as it was read


CV = "2018\u20132022\n  • Built\t the \r\nthing  "


def test_a_record_is_written_back_character_for_character(file, tmp_path):
    entity = {"start": 14, "end": 19, "label": "deed"}
    examples = read_examples(file(json.dumps(ours(CV, entity))))
    write_jsonl(tmp_path / "out.jsonl", examples.sentences)
    assert json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8")) == ours(CV, entity)


def test_the_sentences_of_a_brat_document_are_together_its_whole_text(tmp_path):
    text = "\r\n 2018\u20132022\r\n\n  • Built\t the \r\nthing  \n\n"
    start = text.index("Built")
    (tmp_path / "doc.txt").write_text(text, encoding="utf-8", newline="")
    (tmp_path / "doc.ann").write_text(f"T1\tdeed {start} {start + 5}\tBuilt\n", encoding="utf-8")
    sentences = read_examples(tmp_path).sentences
    assert len(sentences) == 3
    assert "".join(sentence.text for sentence in sentences) == text
    write_jsonl(tmp_path / "out.jsonl", sentences)
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert "".join(record["text"] for record in records) == text
    assert [record["text"][e["start"] : e["end"]] for record in records for e in record["entities"]] == ["Built"]


def test_the_sentences_of_a_text_that_is_cut_are_together_the_whole_text():
    text = " \n" + "w  " * 600 + "\n\n  New" + "\nYork " + "w\t" * 600 + "\n "
    start = text.index("New")
    sentences = parse_examples([ours(text, {"start": start, "end": start + 8, "label": "city"})]).sentences
    assert len(sentences) == 2
    assert "".join(sentence.text for sentence in sentences) == text
    assert sentences[1].text.startswith("  New\nYork")
