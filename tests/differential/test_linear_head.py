"""The linear head: solver, leave-one-out, evidence, adding and removing, labels known by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from spanshot.heads import held_out
from spanshot.heads.evidence import Annotated
from spanshot.heads.fit import Table, choose_rows, fit, useful_first
from spanshot.heads.held_out import leave_one_out
from spanshot.heads.linear import LinearHead, Prior, Rows, sigmoid
from spanshot.heads.settings import HeadSettings
from spanshot.research.nn import linear_head

SIZE, LABELS = 24, 3
SETTINGS = HeadSettings(slope=0.8, shift=0.3, shift_per_log_count=0.1)


def unit(array: np.ndarray) -> np.ndarray:
    return (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)


def prior(rng: np.random.Generator, named: bool = True) -> Prior:
    return Prior(
        rng.normal(size=(LABELS, SIZE)).astype(np.float32),
        np.full(LABELS, -3, np.float32),
        (named,) * LABELS,
    )


def sentence(rng: np.random.Generator, names: Prior, spans: int = 60, **options: int) -> Rows:
    vectors = unit(rng.normal(size=(spans, SIZE)))
    marked = np.zeros((spans, LABELS), bool)
    for label in range(LABELS):
        if rng.random() < 0.7:
            marked[rng.integers(spans), label] = True
    return choose_rows(vectors, marked, names, **options)  # type: ignore[arg-type]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.fixture
def names(rng: np.random.Generator) -> Prior:
    return prior(rng)


@pytest.fixture
def rows(rng: np.random.Generator, names: Prior) -> list[Rows]:
    return [sentence(rng, names) for _ in range(6)]


@pytest.fixture
def head(rows: list[Rows], names: Prior) -> LinearHead:
    return fit(rows, names, SETTINGS)


def test_torch_and_numpy_heads_agree(rng: np.random.Generator) -> None:
    names = prior(rng)
    rows = [sentence(rng, names, hard=100) for _ in range(4)]  # all spans are kept
    head = fit(rows, names, SETTINGS)
    vectors = torch.tensor(np.concatenate([r.vectors for r in rows]))
    marked = torch.tensor(np.concatenate([r.marked for r in rows]))
    annotated = torch.tensor(np.concatenate([np.arange(len(r.vectors)) < r.annotated for r in rows]))
    share = SETTINGS.background * annotated.sum() / (~annotated).sum()
    weights = torch.where(annotated, 1.0, float(share)).expand(LABELS, -1)
    penalties = linear_head.Penalties(*map(torch.tensor, (SETTINGS.shrink_named, SETTINGS.factor_named, SETTINGS.bias)))
    fitted = linear_head.fit(
        vectors, marked.T.float(), weights, torch.tensor(names.weights), torch.tensor(names.bias), penalties, steps=20
    )
    logits = SETTINGS.slope * fitted.scores(vectors) + SETTINGS.shift
    logits = logits + SETTINGS.shift_per_log_count * marked.sum(0).float().log()
    np.testing.assert_allclose(head.scores(vectors.numpy()), logits.numpy(), atol=2e-2)


def test_gradient_through_the_solver_equals_finite_differences(rng: np.random.Generator) -> None:
    vectors = torch.tensor(rng.normal(size=(30, 5)), requires_grad=True)
    targets = torch.tensor(rng.random((2, 30)) < 0.2).double()
    weights = torch.ones(2, 30, dtype=torch.float64)
    prior_weights = torch.tensor(rng.normal(size=(2, 5)), requires_grad=True)
    bias = torch.zeros(2, dtype=torch.float64)
    penalties = linear_head.Penalties(*(torch.tensor(v, dtype=torch.float64) for v in (0.5, 1.0, 0.1)))
    query = torch.tensor(rng.normal(size=(7, 5)))

    def outcome(own: torch.Tensor, names: torch.Tensor) -> torch.Tensor:
        return linear_head.fit(own, targets, weights, names, bias, penalties, steps=40).scores(query).sin().sum()

    assert torch.autograd.gradcheck(outcome, (vectors, prior_weights), eps=1e-5, atol=1e-3)


def test_leave_one_out_equals_refitting(
    head: LinearHead, rows: list[Rows], names: Prior, rng: np.random.Generator
) -> None:
    query = unit(rng.normal(size=(9, SIZE)))
    for number, without in enumerate(leave_one_out(head)):
        again = fit([r for i, r in enumerate(rows) if i != number], names, SETTINGS)
        np.testing.assert_allclose(without.scores(query), again.scores(query), atol=2e-2)


def test_many_examples_are_held_out_in_fewer_steps_with_almost_the_same_scores(
    head: LinearHead, rows: list[Rows], names: Prior, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = leave_one_out(head)
    monkeypatch.setattr(held_out, "MANY", 0)
    query = unit(rng.normal(size=(9, SIZE)))
    for first, second in zip(exact, leave_one_out(head), strict=True):
        np.testing.assert_allclose(sigmoid(first.scores(query)), sigmoid(second.scores(query)), atol=2e-2)


def test_duplicates_are_held_out_together(head: LinearHead, rows: list[Rows], names: Prior) -> None:
    (without,) = leave_one_out(head, [[0, 2]])
    again = fit([rows[1], *rows[3:]], names, SETTINGS)
    np.testing.assert_allclose(without.scorer.weights, again.scorer.weights, atol=2e-2)


def test_a_score_is_the_sum_of_name_examples_unmarked_rows_and_bias(
    head: LinearHead, rows: list[Rows], rng: np.random.Generator
) -> None:
    """The remainder that users see as one reason hides no error: it equals the sum over unmarked rows, and the bias."""
    annotated, table = Annotated.of(head), Table.of(rows, head.prior, SETTINGS)
    thetas, unmarked = head.thetas, ~table.judged
    weights = thetas[:, :-2] + thetas[:, -2:-1] * head.prior.weights
    pull = table.weights * (table.marked - sigmoid(table.features @ weights.T + thetas[:, -1]))
    background = SETTINGS.slope * (pull / SETTINGS.shrink_named)[unmarked].T @ table.features[unmarked]
    for vector in (rows[0].vectors[0], *unit(rng.normal(size=(5, SIZE)))):
        by_name = SETTINGS.slope * thetas[:, -2] * (head.prior.weights @ vector)
        by_examples = (annotated.vectors @ vector) @ annotated.coefficients
        total = by_name + by_examples + background @ vector + head.scorer.bias
        np.testing.assert_allclose(total, head.scores(vector[None])[0], atol=5e-3)


def test_an_example_speaks_for_itself(head: LinearHead, rows: list[Rows]) -> None:
    label = int(np.flatnonzero(rows[0].marked[0])[0])
    annotated = Annotated.of(head)
    best = int(np.argmax(annotated.coefficients[:, label] * (annotated.vectors @ rows[0].vectors[0])))
    assert (annotated.sentence[best], annotated.row[best]) == (0, 0)


def test_with_many_sentences_fewer_unmarked_rows_stand_for_as_many_spans(
    rows: list[Rows], names: Prior, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Table.of(rows, names, SETTINGS)
    monkeypatch.setattr("spanshot.heads.fit.MOST_ROWS", 60)
    table = Table.of(rows, names, SETTINGS)
    assert len(table.features) <= 60 < len(full.features)
    np.testing.assert_array_equal(table.marked.sum(0), full.marked.sum(0))
    for number in range(len(rows)):
        kept, all_unmarked = (~rows_of.judged & (rows_of.sentence == number) for rows_of in (table, full))
        assert table.stands_for[kept].sum() == pytest.approx(full.stands_for[all_unmarked].sum())


def test_rows_that_were_left_out_at_once_or_later_give_the_same_fit(
    names: Prior, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanshot.heads.fit.MOST_ROWS", 60)
    whole = [sentence(np.random.default_rng(seed), names) for seed in range(6)]
    trimmed = [sentence(np.random.default_rng(seed), names, most=10) for seed in range(6)]
    first, second = fit(whole, names, SETTINGS), fit(trimmed, names, SETTINGS)
    np.testing.assert_allclose(first.scorer.weights, second.scorer.weights, atol=1e-6)


def test_the_first_useful_rows_are_the_highest_ranked_and_an_even_spread() -> None:
    for count in (1, 2, 3, 48, 100):
        assert sorted(useful_first(count).tolist()) == list(range(count))
    first = sorted(useful_first(48)[:9].tolist())
    assert first[:5] == [0, 1, 2, 3, 4]
    assert max(first) > 30


def test_adding_and_removing_equal_learning_anew(head: LinearHead, rows: list[Rows], names: Prior) -> None:
    start = None
    for count in (3, 5, 6):
        step_by_step = fit(rows[:count], names, SETTINGS, start=start)
        start = step_by_step.thetas
    np.testing.assert_allclose(step_by_step.scorer.weights, head.scorer.weights, atol=1e-3)
    fewer = fit(rows[:5], names, SETTINGS, start=start)
    np.testing.assert_allclose(fewer.scorer.weights, fit(rows[:5], names, SETTINGS).scorer.weights, atol=1e-3)


def test_order_of_sentences_does_not_matter(head: LinearHead, rows: list[Rows], names: Prior) -> None:
    np.testing.assert_allclose(fit(rows[::-1], names, SETTINGS).scorer.weights, head.scorer.weights, atol=1e-3)


def test_labels_without_examples_score_by_name(names: Prior, rng: np.random.Generator) -> None:
    head = fit([], names, SETTINGS)
    query = unit(rng.normal(size=(4, SIZE)))
    np.testing.assert_allclose(head.scores(query), query @ names.weights.T + names.bias, rtol=1e-5)


def test_sentences_not_annotated_with_a_label_do_not_count_against_it(
    rows: list[Rows], names: Prior, rng: np.random.Generator
) -> None:
    covered = np.array([True, True, False])
    other = choose_rows(
        unit(rng.normal(size=(60, SIZE))),
        np.eye(60, LABELS, dtype=bool) & covered,
        names,
        covered=covered,
    )
    with_other = fit([*rows, other], names, SETTINGS)
    np.testing.assert_allclose(with_other.scorer.weights[2], fit(rows, names, SETTINGS).scorer.weights[2], atol=1e-4)


def test_a_misleading_name_loses_its_factor(rng: np.random.Generator) -> None:
    names = prior(rng)
    rows = []
    for _ in range(10):
        vectors = unit(rng.normal(size=(60, SIZE)))
        marked = np.zeros((60, LABELS), bool)
        marked[np.argmin(vectors @ names.weights[0]), 0] = True  # the name says the opposite
        rows.append(choose_rows(vectors, marked, names))
    assert fit(rows, names, SETTINGS).factors[0] < 0.5


def test_rejected_spans_lower_the_score_of_their_like(rng: np.random.Generator, names: Prior) -> None:
    vectors = unit(rng.normal(size=(60, SIZE)))
    marked = np.zeros((60, LABELS), bool)
    marked[:3] = np.eye(3, dtype=bool)
    plain = fit([choose_rows(vectors, marked, names)], names, SETTINGS)
    told = fit([choose_rows(vectors, marked, names, rejected=[10])], names, SETTINGS)
    assert (told.scores(vectors[10:11]) < plain.scores(vectors[10:11])).any()


def test_rejections_alone_lower_a_named_label(names: Prior, rng: np.random.Generator) -> None:
    vectors = unit(rng.normal(size=(60, SIZE)))
    rows = choose_rows(vectors, np.zeros((60, LABELS), bool), names, rejected=[4])
    head, plain = fit([rows], names, SETTINGS), fit([], names, SETTINGS)
    assert (head.scores(vectors[4:5]) < plain.scores(vectors[4:5])).all()
    assert np.abs(head.scorer.bias - plain.scorer.bias).max() < 1e-2
    annotated = Annotated.of(head)
    assert (annotated.coefficients * (annotated.vectors @ vectors[4])[:, None] < 0).all()


def test_a_text_that_examples_mark_gets_a_bonus(head: LinearHead, rows: list[Rows]) -> None:
    settings = HeadSettings(**{**json.loads(SETTINGS.to_json()), "match": 1.5})
    head = fit(rows, head.prior, settings)
    vector, matches = rows[0].vectors[:1], np.array([[0.0, 0.5, 1.0]], np.float32)
    np.testing.assert_allclose(head.scores(vector, matches) - head.scores(vector), 1.5 * matches, atol=1e-5)
