from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from spanshot.cli.highlights import Tagged, colours, highlighted, page, show_highlights
from spanshot.types import Entity, Reason

LABELS = ("city", "person")
TEXT = "Ada <b>met</b> Bo & Cy in New York\n"


def entity(text: str, start: int, end: int, label: str = "city", *because: Reason) -> Entity:
    return Entity(text[start:end], label, start, end, 0.5, because)


class Reader(HTMLParser):
    """What a browser would show of the articles: their text without labels, and the marks around it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text, self.marked, self.labels, self.open = "", [], [], []
        self.inside, self.small, self.depth = False, False, 0
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.inside |= tag == "article"
        self.small = tag == "small"
        if tag == "mark" and self.inside:
            self.open.append(len(self.text))
            self.titles = [*getattr(self, "titles", []), dict(attributes)["title"]]

    def handle_endtag(self, tag):
        if tag == "article":
            assert not self.open
            self.inside = False
        if tag == "small":
            self.small = False
        if tag == "mark" and self.inside:
            self.marked.append((self.open.pop(), len(self.text)))

    def handle_data(self, data):
        if self.inside and self.small:
            self.labels.append(data)
        elif self.inside:
            self.text += data


def test_a_page_shows_the_text_as_it_is_and_marks_what_was_found():
    found = [entity(TEXT, 0, 3, "person"), entity(TEXT, 26, 34)]
    read = Reader("".join(page([Tagged(TEXT, found)], LABELS)))
    assert read.text == TEXT
    assert read.marked == [(0, 3), (26, 34)]
    assert read.labels == ["person", "city"]


def test_nested_entities_are_marked_within_one_another():
    found = [entity(TEXT, 26, 34), entity(TEXT, 30, 34, "person"), entity(TEXT, 26, 29, "person")]
    read = Reader("".join(page([Tagged(TEXT, found)], LABELS)))
    assert read.text == TEXT
    assert sorted(read.marked) == [(26, 29), (26, 34), (30, 34)]


def test_pointing_at_a_mark_tells_why():
    why = Reason('"Oslo"', "in Oslo <now>", 0.75)
    read = Reader("".join(page([Tagged(TEXT, [entity(TEXT, 0, 3, "city", why)])], LABELS)))
    assert read.titles == ['city: score 50%\n75% from “"Oslo"” in: in Oslo <now>']


def test_a_page_needs_no_other_file_and_counts_its_labels():
    source = "".join(page([Tagged(TEXT, [entity(TEXT, 0, 3)]), Tagged("x", [])], LABELS, title="a < b"))
    assert not re.search(r"(src|href)=|@import|url\(", source)
    assert "<title>a &lt; b</title>" in source
    assert "city<small>1</small>" in source
    assert "person<small>0</small>" in source


@given(st.text(max_size=40), st.data())
def test_whatever_is_found_the_text_stays_the_same(text, data):
    text = text.replace("\r", "\n").replace("\x00", "")  # which no HTML can hold
    bounds = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda b: b[0] < b[1])
    found = data.draw(st.lists(bounds, max_size=5)) if text else []
    entities = [entity(text, start, end) for start, end in found]
    assert Reader("".join(page([Tagged(text, entities)], LABELS))).text == text


def test_the_terminal_shows_the_outermost_entities_with_their_labels():
    found = [entity(TEXT, 0, 3, "person"), entity(TEXT, 26, 34), entity(TEXT, 30, 34, "person")]
    shown = highlighted(Tagged(TEXT, found), colours(LABELS))
    assert shown.plain == "Ada person <b>met</b> Bo & Cy in New York city\n"
    assert len([span for span in shown.spans if "on #" in str(span.style)]) == 2


@pytest.mark.parametrize(("colours_there", "shown"), [(True, "Ada person <b>"), (False, "[Ada](person) <b>")])
def test_without_colours_the_terminal_shows_markup(colours_there, shown):
    out = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", no_color=not colours_there)
    show_highlights(out, [Tagged(TEXT, [entity(TEXT, 0, 3, "person")])], LABELS)
    assert shown in re.sub("\x1b[^m]*m", "", out.file.getvalue())


def test_labels_have_colours_of_their_own_which_stay():
    many = [f"label {number}" for number in range(30)]
    assert len(set(colours(many).values())) == 30
    assert colours(many[:3]) == {label: colours(many)[label] for label in many[:3]}
    assert all(re.fullmatch("#[0-9a-f]{6}", code) for code in colours(many).values())
