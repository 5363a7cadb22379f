"""The project file and its state: every step is on the disk, can be undone, and is read by all commands."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanshot.errors import DataError
from spanshot.formats.documents import Document, Mark
from spanshot.formats.examples import read_documents, read_examples
from spanshot.types import Span
from spanshot.ui.learning import support_of
from spanshot.ui.project import Project, read_history
from spanshot.ui.project_file import project_path
from spanshot.ui.reading import add_new, open_project, read_file, read_pasted
from spanshot.ui.state import Marked

TEXTS = ["to Oslo and Rome", "Oslo is cold 🥶 in May", "Osloer und Oslo\nRome"]


@pytest.fixture
def project(tmp_path):
    opened = Project.open(tmp_path / "trips.spanshot.jsonl")
    opened.add_texts([Document(text) for text in TEXTS], "trips.txt")
    yield opened
    opened.close()


def snapshot(project_or_history):
    state = project_or_history.state
    texts = {n: (t.text, sorted(t.marks), sorted(t.rejected), t.reviewed) for n, t in state.texts.items()}
    return texts, {name: (label.name, label.color, label.threshold) for name, label in state.labels.items()}


def test_a_closed_project_opens_with_all_its_steps(project):
    project.mark(1, 3, 7, "city")
    project.reject(2, 0, 4, "person")
    project.review(3)
    project.set_label("city", threshold=0.4, name="a large town")
    project.undo()
    before = snapshot(project)
    project.close()
    again = Project.open(project.file.path)
    assert snapshot(again) == before
    assert again.redo() == "change label settings"
    assert again.state.labels["city"].threshold == 0.4
    again.close()


def test_all_occurrences_are_marked_except_parts_of_words_and_rejected_ones(project):
    project.reject(2, 0, 4, "city")
    assert project.mark_all(1, 3, 7, "city") == 1
    assert project.state.texts[2].marks == set()
    assert project.state.texts[3].marks == {Marked(11, 15, "city")}
    project.undo()
    assert not any(text.marks for text in project.state.texts.values())


def test_resizing_and_relabelling_are_single_steps(project):
    project.mark(1, 3, 7, "city")
    project.resize(1, 3, 7, "city", (3, 16))
    project.relabel(1, 3, 16, "city", "place")
    assert project.state.texts[1].marks == {Marked(3, 16, "place")}
    assert project.undo() == "change label"
    assert project.undo() == "resize"
    assert project.state.texts[1].marks == {Marked(3, 7, "city")}
    assert set(project.state.labels) == {"city"}


def test_a_span_of_another_label_replaces_the_first_unless_spans_may_nest(project):
    project.mark(1, 3, 7, "city")
    project.mark(1, 3, 7, "place")
    assert {span.label for span in project.state.texts[1].marks} == {"place"}
    project.step("nested", [{"do": "nested", "value": True}])
    project.mark(1, 3, 7, "city")
    assert {span.label for span in project.state.texts[1].marks} == {"city", "place"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((1, 3, 3, "city"), "within its text"),
        ((1, 3, 99, "city"), "within its text"),
        ((1, 2, 3, "city"), "hold a word"),
        ((1, 3, 7, " "), "label"),
        ((1, 3, 7, "O"), "label"),
        ((9, 3, 7, "city"), "no text 9"),
    ],
)
def test_an_impossible_step_is_refused_and_changes_nothing(project, arguments, problem):
    before, size = snapshot(project), project.file.path.stat().st_size
    with pytest.raises(DataError, match=problem):
        project.mark(*arguments)
    assert snapshot(project) == before
    assert project.file.path.stat().st_size == size
    assert project.undo() is None


def test_a_step_that_cannot_be_saved_is_taken_back(project, monkeypatch):
    project.mark(1, 3, 7, "city")
    project.undo()
    before = snapshot(project)

    def full(record):
        raise DataError("the disk is full")

    monkeypatch.setattr(project.file, "append", full)
    for action in (lambda: project.mark(2, 0, 4, "x"), project.redo):
        with pytest.raises(DataError, match="full"):
            action()
        assert snapshot(project) == before
    monkeypatch.undo()
    assert project.redo() == "mark"


def test_two_processes_cannot_write_one_project(project):
    with pytest.raises(DataError, match="another `spanshot ui`"):
        Project.open(project.file.path)


@pytest.mark.parametrize("torn", ['{"do": "step", "chan', '{"do": "st\xff', "{"])
def test_a_torn_last_line_is_ignored_and_removed(project, torn):
    project.mark(1, 3, 7, "city")
    before = snapshot(project)
    project.close()
    with project.file.path.open("ab") as file:
        file.write(torn.encode("latin-1"))
    assert snapshot(read_history(project.file.path)) == before
    again = Project.open(project.file.path)
    again.mark(2, 0, 4, "city")
    again.close()
    assert len(read_history(project.file.path).state.texts[2].marks) == 1


def test_a_last_line_without_a_line_end_that_is_whole_is_kept(project):
    project.mark(1, 3, 7, "city")
    project.close()
    path = project.file.path
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    again = Project.open(path)
    again.mark(2, 0, 4, "city")
    again.close()
    assert [len(text.marks) for text in read_history(path).state.texts.values()] == [1, 1, 0]


def test_a_damaged_line_is_an_error_that_names_it(project):
    project.close()
    lines = project.file.path.read_text(encoding="utf-8").splitlines(keepends=True)
    project.file.path.write_text("".join([*lines[:2], "oops\n", *lines[2:]]), encoding="utf-8")
    with pytest.raises(DataError, match=r"jsonl:3: is not JSON"):
        Project.open(project.file.path)


def test_the_file_is_readable_json_lines(project):
    project.mark(2, 0, 4, "city")
    lines = [json.loads(line) for line in project.file.path.read_text(encoding="utf-8").splitlines()]
    assert [line["do"] for line in lines] == ["project", "text", "text", "text", "step"]
    assert "🥶" in project.file.path.read_text(encoding="utf-8")


def test_examples_of_a_project_are_read_like_any_other_file(project):
    project.mark(2, 0, 4, "city")
    project.reject(2, 18, 21, "city")
    project.review(1, accept=[Marked(3, 7, "city")])
    project.set_label("day")
    examples = read_examples(project.file.path)
    first, second = examples.sentences
    assert (first.spans, first.annotated) == ((Span(1, 2, "city"),), ("city",))  # "day" came later
    assert (second.spans, second.rejected) == ((Span(0, 1, "city"),), (Span(5, 6, "city"),))
    assert examples.format == "project"
    assert len(read_documents(project.file.path).documents) == 2
    support, numbers = support_of(project.state)
    assert (support.sentences, numbers) == (examples.sentences, [1, 2])
    assert support.labels == ("city", "day")


def test_texts_of_files_are_read_once_with_their_annotations(tmp_path):
    source = tmp_path / "trips.txt"
    source.write_text("[Oslo](city) is cold\nRome is not\n", encoding="utf-8")
    project = open_project(project_path(source), [source])
    first, second = project.state.texts.values()
    assert (first.text, first.marks, first.reviewed) == ("Oslo is cold", {Marked(0, 4, "city")}, ("city",))
    assert (second.text, second.reviewed) == ("Rome is not", None)
    project.close()
    source.write_text("[Oslo](city) is cold\nRome is not\nLima\n", encoding="utf-8")
    again = open_project(project_path(source), [source])
    assert [text.text for text in again.state.texts.values()] == ["Oslo is cold", "Rome is not", "Lima"]
    again.close()


def test_predictions_in_a_file_are_suggestions_and_not_marks(tmp_path, project):
    path = tmp_path / "found.jsonl"
    path.write_text(
        '{"text": "in Lima", "entities": [{"start": 3, "end": 7, "label": "city", "score": 0.7}]}\n', encoding="utf-8"
    )
    (number,) = add_new(project, read_file(path))
    text = project.state.texts[number]
    assert (text.marks, text.imported) == (set(), ((Marked(3, 7, "city"), 0.7),))
    assert not text.touched


@pytest.mark.parametrize(
    ("pasted", "texts"),
    [
        ("one\n\n  \ntwo\n", ["one", "two"]),
        ('{"text": "one"}\n{"text": "two"}', ["one", "two"]),
        ("[Oslo](city) x", ["Oslo x"]),
        ("Oslo B-city\nis O\n", ["Oslo is"]),
        ("a [link](http://x) is no mark?", None),
    ],
)
def test_pasted_text_is_read_in_any_format(pasted, texts):
    pasted_texts = [document.text for document in read_pasted(pasted)]
    assert pasted_texts == texts or (texts is None and len(pasted_texts) == 1)


def test_texts_without_words_are_left_out(project):
    assert project.add_texts([Document("  "), Document("\u200b"), Document("x", (Mark(0, 1, "a"),))]) == [4]


spans = st.tuples(st.integers(0, 18), st.integers(1, 8), st.sampled_from(["city", "day", "🏙 x"]))
steps = st.one_of(
    st.tuples(st.sampled_from(["mark", "unmark", "reject", "mark_all"]), st.integers(1, 3), spans),
    st.tuples(st.sampled_from(["review", "unreview"]), st.integers(1, 3)),
    st.tuples(st.sampled_from(["undo", "redo"])),
)


def apply(project, step):
    name, *arguments = step
    if arguments and len(arguments) == 2:
        text, (start, width, label) = arguments
        arguments = [text, start, start + width, label]
    with contextlib.suppress(DataError):
        getattr(project, name)(*arguments)


@given(st.lists(steps, max_size=25))
def test_any_steps_can_be_replayed_and_all_of_them_undone_and_redone(tmp_path_factory, actions):
    path = tmp_path_factory.mktemp("project") / "p.spanshot.jsonl"
    project = Project.open(path)
    try:
        project.add_texts([Document(text) for text in TEXTS])
        empty = snapshot(project)
        for action in actions:
            apply(project, action)
        full = snapshot(project)
        assert snapshot(read_history(path)) == full
        support_of(project.state)  # any state can be learned
        undone = 0
        while project.undo() is not None:
            undone += 1
        assert snapshot(project) == empty
        for _ in range(undone):
            project.redo()
        assert snapshot(project) == full == snapshot(read_history(path))
    finally:
        project.close()


def test_the_project_of_a_file_lies_next_to_it():
    assert project_path(Path("a/b.notes.txt")) == Path("a/b.notes.spanshot.jsonl")
