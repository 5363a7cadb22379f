"""Offset tables and visible text against tables of every position."""

from hypothesis import given
from hypothesis import strategies as st

from spanshot.formats.offsets import OffsetTable, Unit, VisibleText

texts = st.text("a😀\r\n\ufeff \u2028b", max_size=12)


def every_position(text, unit):
    """For every offset between two characters, the number of characters before it."""
    positions, offset = {0: 0}, 0
    for position, character in enumerate(text):
        if (character == "\r" and text[position + 1 : position + 2] == "\n") or (
            character == "\ufeff" and not position
        ):
            offset += unit.silent
        else:
            offset += unit.astral if character > "\uffff" else 1
        positions[offset] = position + 1
    return positions


@given(texts, st.sampled_from([1, 2]), st.sampled_from([0, 1]))
def test_offsets_are_the_positions_that_counting_gives(text, astral, silent):
    unit = Unit(astral, silent)
    table, expected = OffsetTable(text, unit), every_position(text, unit)
    assert [table.position(n) for n in range(-2, 30)] == [expected.get(n) for n in range(-2, 30)]


@given(texts, texts)
def test_visible_text_is_compared_without_white_space(text, surface):
    visible = VisibleText(text)
    for start in range(len(text) + 1):
        for end in range(len(text) + 1):
            part = "".join(text[start:end].split())
            assert visible.matches(start, end, surface) == (part == "".join(surface.split()))
            assert visible.matches(start, end, text[start:end])
            assert visible.is_blank(start, end) == (start <= end and not part)
