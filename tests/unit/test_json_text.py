from __future__ import annotations

import doctest
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanshot import json_text
from spanshot.errors import DataError
from spanshot.evaluation.counts import Counts
from spanshot.evaluation.report import Report
from spanshot.evaluation.runs import RunReport, Subject
from spanshot.json_text import Fields, parse_json, to_json

TEXT = st.text(st.characters())  # all characters, lone surrogates as well
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


def test_the_examples_in_the_docstrings_hold():
    result = doctest.testmod(json_text)
    assert result.attempted > 0
    assert result.failed == 0


@settings(deadline=None)
@given(VALUES)
def test_what_is_written_is_one_line_of_valid_json_with_the_same_value(value):
    text = to_json(value)
    assert text.encode("utf-8")
    assert len(text.splitlines()) == 1
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text)
    assert json.loads(text) == value
    assert parse_json(text) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf], {"x": math.nan}])
def test_nan_and_infinity_are_never_written(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(value)


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", "[Infinity]", "-Infinity", "[" * 100_000, "9" * 5_000, "1e999", '{"a": 1,}']
)
def test_text_that_is_not_json_is_one_kind_of_error(text):
    with pytest.raises(DataError) as error:
        parse_json(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda fields: fields.text("absent"), "'absent' is missing"),
        (lambda fields: fields.text("number"), "must be a string"),
        (lambda fields: fields.integer("text"), "must be a whole number"),
        (lambda fields: fields.integer("yes"), "must be a whole number"),
        (lambda fields: fields.number("text"), "must be a number"),
        (lambda fields: fields.number("large"), "too large"),
        (lambda fields: fields.object("text"), "must be an object"),
        (lambda fields: fields.list("text"), "must be a list"),
        (lambda fields: Fields.of(3), "expected a JSON object"),
    ],
)
def test_a_field_of_another_type_is_refused(read, message):
    with pytest.raises(DataError, match=message):
        read(Fields({"text": "x", "number": 3.5, "yes": True, "large": 10**400}))


COUNTS = st.builds(
    Counts, tp=st.integers(0, 9), fn=st.integers(0, 9), fp_span=st.integers(0, 9), fp_type=st.integers(0, 9)
)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), COUNTS), max_size=4))
def test_a_report_is_read_back_as_it_was_written(tables):
    report = Report.of(tables, {("a", "b"): 2})
    subject = Subject("test", {"name": "esd"}, {"kind": "snips"}, 1, 4, 0.5)
    run = RunReport(
        run="runs/x", subject=subject, metric="mean_f1", report=report, o_bias=0.5, without_o_bias=report,
        parameters=3, seconds_to_learn=0.25, seconds_per_sentence=0.5, digest="abc", training_seconds=None,
    )  # fmt: skip
    assert RunReport.from_dict(parse_json(to_json(run.to_dict(counts_of_episodes=True)))) == run


def test_a_report_without_its_counts_or_with_contradicting_ones_is_refused():
    report = Report.of([{"a": Counts(tp=1)}])
    with pytest.raises(DataError, match="'episode_counts' is missing"):
        Report.from_dict(report.to_dict())
    record = report.to_dict(counts_of_episodes=True)
    for wrong in ([[2, 0, 0, 0]], [[1, 0]], ["1"], [[1, 0, 0, "0"]]):
        with pytest.raises(DataError):
            Report.from_dict({**record, "episode_counts": wrong})
