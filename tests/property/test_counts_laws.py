from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanshot.evaluation.counts import Counts, add_tables, count, count_by_label
from spanshot.evaluation.report import Report
from spanshot.types import Span
from strategies_spans import spans

some_spans = st.lists(spans(words=5, longest=3), max_size=8)
some_counts = st.builds(
    Counts, tp=st.integers(0, 9), fn=st.integers(0, 9), fp_span=st.integers(0, 9), fp_type=st.integers(0, 9)
)
some_tables = st.lists(st.dictionaries(st.sampled_from("abc"), some_counts), max_size=6)


@given(gold=some_spans, found=some_spans)
def test_each_marked_and_each_found_span_is_counted_once(gold: list[Span], found: list[Span]):
    counts = count(gold, found)
    assert counts.tp + counts.fn == len(set(gold))
    assert counts.tp + counts.fp == len(set(found))


@given(gold=some_spans, found=some_spans, data=st.data())
def test_the_order_of_the_spans_is_no_matter(gold: list[Span], found: list[Span], data: st.DataObject):
    shuffled = data.draw(st.permutations(gold)), data.draw(st.permutations(found))
    assert count(*shuffled) == count(gold, found)


@given(gold=some_spans, found=some_spans)
def test_trading_gold_and_found_trades_precision_and_recall(gold: list[Span], found: list[Span]):
    one, other = count(gold, found), count(found, gold)
    assert (one.precision, one.recall, one.f1) == (other.recall, other.precision, other.f1)


@given(gold=some_spans, found=some_spans)
def test_labels_add_up_to_the_sentence(gold: list[Span], found: list[Span]):
    table = count_by_label(gold, found)
    assert sum(table.values(), Counts()) == count(gold, found)
    assert set(table) == {span.label for span in [*gold, *found]}


@given(gold=some_spans, found=some_spans)
def test_forgetting_the_labels_turns_errors_of_type_into_hits_and_leaves_those_of_boundary(
    gold: list[Span], found: list[Span]
):
    def plain(given: list[Span]) -> set[Span]:
        return {Span(span.start, span.end, "any") for span in given}

    counts, unlabelled = count(gold, found), count(plain(gold), plain(found))
    assert unlabelled.fp_type == 0
    wrong_bounds = {(s.start, s.end) for s in found} - {(s.start, s.end) for s in gold}
    assert unlabelled.fp_span == len(wrong_bounds)
    assert (counts.fp_span == 0) == (unlabelled.fp_span == 0)


@given(gold=some_spans)
def test_a_perfect_answer_scores_one(gold: list[Span]):
    assert count(gold, gold) == Counts(tp=len(set(gold)))
    assert count(gold, gold).f1 == (1.0 if gold else 0.0)


@given(counts=some_counts)
def test_scores_lie_between_zero_and_one_and_f1_between_precision_and_recall(counts: Counts):
    low, high = sorted((counts.precision, counts.recall))
    assert 0 <= low <= high <= 1
    assert low <= counts.f1 * (1 + 1e-12)
    assert counts.f1 <= high * (1 + 1e-12)


@given(counts=some_counts)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(counts: Counts):
    both = counts.precision + counts.recall
    assert counts.f1 == pytest.approx(2 * counts.precision * counts.recall / both if both else 0.0)


@given(a=some_counts, b=some_counts, c=some_counts)
def test_adding_counts_is_associative_commutative_and_has_a_zero(a: Counts, b: Counts, c: Counts):
    assert (a + b) + c == a + (b + c) == sum([c, a, b])
    assert a + Counts() == a


@given(a=some_counts, b=some_counts)
def test_merged_scores_lie_between_those_of_the_parts(a: Counts, b: Counts):
    for name in ("precision", "recall", "f1"):
        parts = [getattr(c, name) for c in (a, b) if c.tp + c.fp and c.tp + c.fn]
        if len(parts) == 2:
            merged = getattr(a + b, name)
            assert min(parts) - 1e-12 <= merged <= max(parts) + 1e-12


@given(tables=some_tables)
def test_a_report_agrees_with_its_parts(tables: list[dict[str, Counts]]):
    report = Report.of(tables)
    assert report.total == sum(add_tables(tables).values(), Counts())
    assert 0 <= report.mean_f1 <= 1
    if tables:
        f1s = [counts.f1 for counts in report.episodes]
        assert min(f1s) - 1e-12 <= report.mean_f1 <= max(f1s) + 1e-12


@given(tables=some_tables, data=st.data())
def test_the_order_of_the_episodes_is_no_matter_to_the_scores(tables: list[dict[str, Counts]], data: st.DataObject):
    report, shuffled = Report.of(tables), Report.of(data.draw(st.permutations(tables)))
    assert shuffled.total == report.total
    assert shuffled.mean_f1 == pytest.approx(report.mean_f1)
    assert shuffled.labels == report.labels


@given(table=st.dictionaries(st.sampled_from("abc"), some_counts))
def test_of_a_single_episode_micro_and_mean_are_the_same(table: dict[str, Counts]):
    report = Report.of([table])
    assert report.micro_f1 == pytest.approx(report.mean_f1)
