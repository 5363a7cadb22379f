from __future__ import annotations

import doctest
import json
import random
import subprocess
import sys

import numpy as np
import pytest

from spanshot.evaluation import counts as scoring
from spanshot.evaluation.counts import Counts, add_tables, count, count_by_label, spread
from spanshot.evaluation.report import Report
from spanshot.types import Span


def test_the_examples_in_the_docstrings_hold():
    result = doctest.testmod(scoring)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_module_needs_no_torch():
    program = "import sys, spanshot.evaluation.counts; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_precision_recall_and_f1_come_from_the_counts():
    counts = Counts(tp=3, fn=3, fp_span=1, fp_type=2)
    assert counts.fp == 3
    assert counts.precision == 0.5
    assert counts.recall == 0.5
    assert counts.f1 == 0.5
    assert Counts(tp=1, fn=1).f1 == pytest.approx(2 / 3)


@pytest.mark.parametrize("counts", [Counts(), Counts(fn=2), Counts(fp_span=2), Counts(fn=1, fp_type=1)])
def test_scores_are_zero_where_nothing_is_right_or_nothing_is_defined(counts: Counts):
    assert (counts.precision, counts.recall, counts.f1) == (0.0, 0.0, 0.0)


def test_counts_add_up_with_plus_and_sum():
    parts = [Counts(tp=1, fn=2, fp_span=3, fp_type=4), Counts(tp=10, fn=20, fp_span=30, fp_type=40)]
    assert sum(parts) == parts[0] + parts[1] == Counts(tp=11, fn=22, fp_span=33, fp_type=44)


def test_counts_do_not_add_to_other_things():
    with pytest.raises(TypeError):
        Counts(tp=1) + 1
    with pytest.raises(TypeError):
        1 + Counts(tp=1)


def test_a_span_is_right_only_with_both_ends_and_the_label():
    gold = [Span(2, 4, "city")]
    assert count(gold, [Span(2, 4, "city")]) == Counts(tp=1)
    assert count(gold, [Span(2, 4, "date")]) == Counts(fn=1, fp_type=1)
    assert count(gold, [Span(2, 5, "city")]) == Counts(fn=1, fp_span=1)
    assert count(gold, [Span(1, 4, "city")]) == Counts(fn=1, fp_span=1)
    assert count(gold, []) == Counts(fn=1)
    assert count([], gold) == Counts(fp_span=1)


def test_a_second_label_on_the_right_boundary_is_an_error_of_type():
    gold = [Span(0, 2, "city")]
    assert count(gold, [Span(0, 2, "city"), Span(0, 2, "person")]) == Counts(tp=1, fp_type=1)


def test_nested_spans_count_each_for_itself():
    gold = [Span(0, 4, "protein"), Span(0, 2, "DNA")]
    assert count(gold, [Span(0, 2, "DNA"), Span(1, 4, "protein")]) == Counts(tp=1, fn=1, fp_span=1)


def test_a_repeated_span_counts_once():
    assert count([Span(0, 1, "city")] * 2, [Span(0, 1, "city")] * 3) == Counts(tp=1)


def test_an_iterator_can_be_counted():
    assert count(iter([Span(0, 1, "city")]), iter([Span(0, 1, "city")])) == Counts(tp=1)


def test_by_label_a_wrong_span_counts_for_the_label_it_was_given():
    gold = [Span(0, 2, "city"), Span(3, 4, "date")]
    found = [Span(0, 2, "person"), Span(3, 4, "date"), Span(5, 6, "city")]
    assert count_by_label(gold, found) == {
        "city": Counts(fn=1, fp_span=1),
        "date": Counts(tp=1),
        "person": Counts(fp_type=1),
    }


def test_equal_positions_in_two_sentences_are_different_spans():
    # Joined, the two sentences would look perfect.
    first = count([Span(0, 1, "city")], [])
    second = count([], [Span(0, 1, "city")])
    assert first + second == Counts(fn=1, fp_span=1)


def test_tables_add_label_by_label():
    one, other = {"b": Counts(tp=1)}, {"a": Counts(fn=1), "b": Counts(fp_span=2)}
    assert add_tables([one, other]) == {"a": Counts(fn=1), "b": Counts(tp=1, fp_span=2)}
    assert list(add_tables([one, other])) == ["a", "b"]
    assert one == {"b": Counts(tp=1)}


def test_micro_f1_weighs_spans_and_mean_f1_weighs_episodes():
    report = Report.of([{"city": Counts(tp=9, fn=1)}, {"city": Counts(fn=1), "date": Counts(fp_span=1)}])
    assert report.total == Counts(tp=9, fn=2, fp_span=1)
    assert report.micro_f1 == pytest.approx(18 / 21)
    assert report.mean_f1 == pytest.approx((18 / 19 + 0) / 2)
    assert report.precision == pytest.approx(0.9)
    assert report.recall == pytest.approx(9 / 11)
    assert report.labels == {"city": Counts(tp=9, fn=2), "date": Counts(fp_span=1)}


def test_a_report_refuses_labels_that_do_not_add_up_to_the_episodes():
    with pytest.raises(ValueError, match="must add up"):
        Report((Counts(tp=2),), {"city": Counts(tp=1)})


def test_a_report_on_nothing_is_all_zeros():
    report = Report.of([])
    assert (report.micro_f1, report.mean_f1) == (0.0, 0.0)
    assert report.to_dict()["confidence"] == {"level": 0.95, "micro_f1": [0.0, 0.0], "mean_f1": [0.0, 0.0]}


def mixed_report(episodes: int = 40) -> Report:
    rng = random.Random(5)
    return Report.of({"x": Counts(tp=rng.randint(0, 9), fn=rng.randint(0, 4))} for _ in range(episodes))


def test_intervals_enclose_the_scores_and_depend_on_nothing_but_the_seed():
    report = mixed_report()
    intervals = report.confidence(seed=3)
    for name, score in (("micro_f1", report.micro_f1), ("mean_f1", report.mean_f1)):
        low, high = intervals[name]
        assert 0 <= low < score < high <= 1
    assert report.confidence(seed=3) == intervals
    assert report.confidence(seed=4) != intervals


def test_intervals_leave_the_process_wide_generators_alone():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    mixed_report().confidence()
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_intervals_widen_with_the_level_and_narrow_with_more_episodes():
    def width(report: Report, level: float) -> float:
        low, high = report.confidence(level)["mean_f1"]
        return high - low

    assert width(mixed_report(), 0.5) < width(mixed_report(), 0.99)
    assert width(mixed_report(2000), 0.95) < width(mixed_report(40), 0.95)


def test_an_interval_reaches_two_standard_errors_to_each_side():
    report = mixed_report(200)
    mean, deviation = spread([counts.f1 for counts in report.episodes])
    reach = 1.96 * deviation / 200**0.5
    low, high = report.confidence(resamples=10_000)["mean_f1"]
    assert mean - low == pytest.approx(reach, rel=0.08)
    assert high - mean == pytest.approx(reach, rel=0.08)


def test_intervals_of_episodes_that_are_all_alike_have_no_width():
    report = Report.of([{"x": Counts(tp=1, fn=1)}] * 8)
    for low, high in report.confidence().values():
        assert low == high == pytest.approx(2 / 3)


def test_a_report_goes_through_json_unchanged():
    report = Report.of([{"city": Counts(tp=2, fp_type=1)}, {"date": Counts(fn=1, fp_span=3)}])
    told = report.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["episodes"] == 2
    assert told["micro_f1"] == report.micro_f1
    assert told["mean_f1"] == report.mean_f1
    assert (told["tp"], told["fp"], told["fn"], told["fp_span"], told["fp_type"]) == (2, 4, 1, 3, 1)
    assert told["labels"]["city"]["f1"] == pytest.approx(0.8)
    assert told["confidence"]["micro_f1"] == list(report.confidence()["micro_f1"])


def test_the_deviation_of_several_runs_is_that_of_a_sample():
    assert spread([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    assert spread([0.4]) == (0.4, 0.0)
    with pytest.raises(ValueError, match="at least one value"):
        spread([])
