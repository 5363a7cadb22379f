"""Our counts against seqeval and nervaluate, on spans that tag sequences can express."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nervaluate.evaluator import Evaluator
from seqeval.metrics import classification_report, f1_score, precision_score, recall_score
from seqeval.scheme import IOB2

from spanshot.evaluation.counts import Counts, add_tables, count, count_by_label
from spanshot.types import Span
from strategies_spans import LABELS, flat_spans

Document = list[tuple[int, list[Span], list[Span]]]  # sentences: number of words, gold, found


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Sentences with gold and found spans; found ones are often gold ones, or those with another label."""
    sentences: Document = []
    for _ in range(draw(st.integers(1, 4))):
        words = draw(st.integers(1, 9))
        gold = draw(flat_spans(words))
        if draw(st.booleans()):
            found = draw(flat_spans(words))
        else:
            kept = [span for span in gold if draw(st.booleans())]
            found = [Span(span.start, span.end, draw(st.sampled_from(LABELS))) for span in kept]
        sentences.append((words, gold, found))
    return sentences


def bio(words: int, spans: list[Span]) -> list[str]:
    tags = ["O"] * words
    for span in spans:
        tags[span.start : span.end] = [f"B-{span.label}"] + [f"I-{span.label}"] * (len(span) - 1)
    return tags


def tagged(document: Document) -> tuple[list[list[str]], list[list[str]]]:
    gold = [bio(words, spans) for words, spans, _ in document]
    return gold, [bio(words, spans) for words, _, spans in document]


def counted(document: Document) -> Counts:
    return sum((count(gold, found) for _, gold, found in document), Counts())


def counted_by_label(document: Document) -> dict[str, Counts]:
    return add_tables(count_by_label(gold, found) for _, gold, found in document)


@pytest.mark.parametrize("mode", [{}, {"mode": "strict", "scheme": IOB2}], ids=["like conlleval", "strict IOB2"])
@given(document=documents())
def test_micro_scores_agree_with_seqeval(mode: dict, document: Document):
    ours, (gold, found) = counted(document), tagged(document)
    assert ours.precision == pytest.approx(precision_score(gold, found, zero_division=0, **mode))
    assert ours.recall == pytest.approx(recall_score(gold, found, zero_division=0, **mode))
    assert ours.f1 == pytest.approx(f1_score(gold, found, zero_division=0, **mode))


@given(document=documents())
def test_scores_by_label_agree_with_seqeval(document: Document):
    ours = counted_by_label(document)
    if not ours:
        return  # without any span seqeval's macro average divides by zero
    gold, found = tagged(document)
    theirs = classification_report(gold, found, output_dict=True, zero_division=0, mode="strict", scheme=IOB2)
    assert set(ours) == set(theirs) - {"micro avg", "macro avg", "weighted avg"}
    for label, counts in ours.items():
        assert counts.precision == pytest.approx(theirs[label]["precision"])
        assert counts.recall == pytest.approx(theirs[label]["recall"])
        assert counts.f1 == pytest.approx(theirs[label]["f1-score"])
        assert counts.tp + counts.fn == theirs[label]["support"]


@given(document=documents())
def test_counts_agree_with_nervaluate(document: Document):
    gold, found = tagged(document)
    overall = Evaluator(gold, found, tags=list(LABELS), loader="list").evaluate()["overall"]
    strict, exact = overall["strict"], overall["exact"]
    ours = counted(document)
    assert ours.tp == strict.correct
    assert ours.fp == strict.incorrect + strict.spurious  # what meets a gold span wrongly, what meets none
    assert ours.fn == strict.incorrect + strict.missed
    assert ours.fp_type == exact.correct - strict.correct  # "exact" asks for the boundary alone
    assert ours.precision == pytest.approx(strict.precision)
    assert ours.recall == pytest.approx(strict.recall)
    assert ours.f1 == pytest.approx(strict.f1)


@given(document=documents())
def test_counts_by_label_agree_with_nervaluate(document: Document):
    gold, found = tagged(document)
    entities = Evaluator(gold, found, tags=list(LABELS), loader="list").evaluate()["entities"]
    ours = counted_by_label(document)
    assert set(ours) == set(entities)
    for label, counts in ours.items():
        strict = entities[label]["strict"]
        assert counts.tp == strict.correct
        assert counts.fp == strict.incorrect + strict.spurious
        assert counts.fn == strict.incorrect + strict.missed
