from __future__ import annotations

from spanshot.evaluation.report import Report
from spanshot.examples.lint import Kind
from spanshot.examples.weak_labels import weak_labels
from spanshot.types import Span


def span(at: int, label: str) -> Span:
    return Span(at, at + 1, label)


def test_a_label_that_is_never_found_is_reported_with_its_confusions_and_advice():
    report = Report.of_sentences(
        [
            ([span(0, "day"), span(2, "city")], [span(0, "date"), span(2, "city")]),
            ([span(0, "day"), span(2, "city")], [span(2, "city")]),
        ]
    )
    (finding,) = weak_labels(report)
    assert finding.kind is Kind.WEAK
    assert finding.message.startswith("'day' is not learned well: F1 0, 0 of 2 spans found")
    assert "1 found as 'date': add examples with both labels" in finding.message
    assert "1 missed: add examples of 'day'" in finding.message


def test_a_label_that_is_found_too_often_needs_sentences_without_it():
    report = Report.of_sentences([([span(0, "day")], [span(at, "day") for at in range(6)])])
    assert "5 wrong ones: add sentences with similar words" in weak_labels(report)[0].message


def test_labels_that_are_learned_well_or_were_not_tested_are_not_reported():
    report = Report.of_sentences([([span(0, "city")], [span(0, "city"), span(3, "day")])])
    assert weak_labels(report) == []
