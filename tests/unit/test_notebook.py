"""Taggers and results in notebooks: HTML that shows them, and progress where it can be seen."""

from __future__ import annotations

import copy
import pickle
from html.parser import HTMLParser

import pytest

import spanshot
from spanshot.errors import InputError
from spanshot.integrations.notebook import progress
from spanshot.tagger import Entities
from spanshot.types import Entity, Sentence, Span, SupportSet
from stub_tagger import NameTagger

TEXT = "Ada <b>met</b> Bo & Rome\n"


class Reader(HTMLParser):
    """The text that a browser would show, without labels, and the tags that it would see."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text, self.tags, self.labels, self._skipped = "", [], [], ""
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag in {"style", "small"}:
            self._skipped = tag

    def handle_endtag(self, tag):
        if tag == self._skipped:
            self._skipped = ""

    def handle_data(self, data):
        if self._skipped == "small":
            self.labels.append(data)
        elif not self._skipped:
            self.text += data


def test_a_result_shows_its_text_with_marks():
    read = Reader(NameTagger()(TEXT)._repr_html_())
    assert read.text == TEXT
    assert read.labels == ["person", "person", "city"]
    assert read.tags.count("mark") == 3
    assert not {"script", "link", "b"} & set(read.tags)


def test_a_result_is_a_list_in_every_other_way():
    result = NameTagger()("Ada met Bo")
    assert result == list(result)
    assert isinstance(result, list)
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert (again, again.text) == (result, result.text)


def test_a_tagger_shows_its_labels_and_first_examples():
    sentences = [Sentence.of_text(f"to Oslo {number}", [Span(1, 2, "<city>")]) for number in range(9)]
    read = Reader(NameTagger(support=SupportSet.of(sentences))._repr_html_())
    assert "to Oslo 0" in read.text
    assert "to Oslo 8" not in read.text
    assert "… and 4 more" in read.text
    assert "<city>" in read.text
    assert read.labels[0] == "9"


def test_entities_can_be_shown_in_their_text_and_nowhere_else():
    shown = spanshot.show("in Oslo", [Entity("Oslo", "city", 3, 7)])
    assert repr(shown) == "in [Oslo](city)"
    assert Reader(shown._repr_html_()).text == "in Oslo"
    with pytest.raises(InputError, match="'Oslo' is not at characters 3 to 7"):
        spanshot.show("to Rome", [Entity("Oslo", "city", 3, 7)])


def test_an_empty_result_is_still_shown():
    assert Reader(Entities([], "nothing")._repr_html_()).text == "nothing"


def test_progress_passes_items_on_and_is_silent_where_nobody_looks(capsys):
    assert list(progress([1, 2, 3], 3)) == [1, 2, 3]
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_real_notebook_renders_results_and_progress(tmp_path):
    pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient

    cells = [
        "import spanshot\nspanshot.show('in Oslo', [spanshot.Entity('Oslo', 'city', 3, 7)])",
        "from spanshot.integrations.notebook import progress\nlist(progress(range(3), 3))",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    first, second = notebook.cells
    assert "<mark" in first.outputs[0]["data"]["text/html"]
    assert "3 of 3 texts" in second.outputs[0]["data"]["text/html"]
