from __future__ import annotations

import pytest

from spanshot.examples.lint import Kind, findings
from spanshot.formats.inline import parse_inline

GOOD = [
    "we saw [Oslo](city) with [Ada](person) .",
    "[Rome](city) and [Bo](person) again",
    "is [Cy](person) in [Lima](city) ?",
]


def found(*lines: str) -> dict[Kind, list[tuple[int, ...]]]:
    table: dict[Kind, list[tuple[int, ...]]] = {}
    for finding in findings([parse_inline(line) for line in lines]):
        table.setdefault(finding.kind, []).append(finding.examples)
    return table


def test_good_examples_have_no_findings():
    assert found(*GOOD) == {}


@pytest.mark.parametrize(
    ("lines", "kind", "examples"),
    [
        (["we saw [oslo](person) with [Ada](person) ."], Kind.CONFLICT, (1, 4)),
        (["Lima is nice"], Kind.UNMARKED, (4,)),
        ([GOOD[0]], Kind.DUPLICATE, (1, 4)),
        (["on [Monday](day) ."], Kind.SINGLE, (4,)),
        (["on [Monday](day) .", "[Friday](day) !"], Kind.FEW, (4, 5)),
        (["x [a b c d e f g h i](city)"], Kind.LONG, (4,)),
    ],
)
def test_each_kind_is_found_where_it_is(lines, kind, examples):
    assert found(*GOOD, *lines)[kind] == [examples]


def test_examples_without_a_word_outside_of_entities_are_told():
    assert Kind.NO_NEGATIVE in found("[Oslo](city)", "[Rome](city)", "[Lima](city)")
    assert Kind.NO_NEGATIVE not in found("[Oslo](city)", "[Rome](city)", "in [Lima](city)")


def test_what_is_marked_as_part_of_something_else_is_not_unmarked():
    assert Kind.UNMARKED not in found(*GOOD, "the [New Rome](city) one")


def test_the_gravest_come_first():
    kinds = [
        finding.kind for finding in findings([parse_inline(line) for line in (*GOOD, GOOD[0], "on [Monday](day)")])
    ]
    assert kinds == sorted(kinds, key=list(Kind).index)
    assert len(kinds) == 2


def test_a_span_with_two_labels_is_told():
    from spanshot.types import Sentence, Span

    both = Sentence(("in", "Oslo"), (Span(1, 2, "city"), Span(1, 2, "place")))
    assert [f.examples for f in findings([both]) if f.kind is Kind.TWO_LABELS] == [(1,)]
