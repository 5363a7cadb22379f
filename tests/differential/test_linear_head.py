"""The linear head: solver, leave-one-out, evidence, adding and removing, labels known by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from spanshot.heads import held_out
from spanshot.heads.held_out import leave_one_out
from spanshot.heads.linear import LinearHead, Prior, fit, row_weights, stack
from spanshot.heads.rows import Rows, choose_rows
from spanshot.heads.settings import HeadSettings
from spanshot.heads.solver import sigmoid
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
    return choose_rows(vectors, marked, names.weights, names.bias, **options)  # type: ignore[arg-type]


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
    np.testing.assert_allclose(without.weights, again.scorer.weights, atol=2e-2)


def test_evidence_sums_to_the_score(head: LinearHead, rng: np.random.Generator) -> None:
    for vector in unit(rng.normal(size=(5, SIZE))):
        for label in range(LABELS):
            terms = head.evidence(vector, label)
            assert sum(term.value for term in terms) == pytest.approx(head.scores(vector[None])[0, label], abs=1e-4)


def test_terms_of_examples_follow_from_the_fit(head: LinearHead, rows: list[Rows]) -> None:
    """The background's term is not a remainder that hides errors: it equals the sum over unmarked rows."""
    vector = rows[0].vectors[0]
    label = int(np.flatnonzero(rows[0].marked[0])[0])
    background = next(term.value for term in head.evidence(vector, label) if term.kind == "background")
    table = stack(rows)
    theta = head.thetas[label]
    scores = table.features @ (theta[:-2] + theta[-2] * head.prior.weights[label]) + theta[-1]
    coefficient = row_weights(table, label, SETTINGS) * -sigmoid(scores) / SETTINGS.shrink_named
    unmarked = ~table.annotated
    assert SETTINGS.slope * coefficient[unmarked] @ (table.features[unmarked] @ vector) == pytest.approx(
        background, abs=5e-3
    )


def test_an_example_speaks_for_itself(head: LinearHead, rows: list[Rows]) -> None:
    label = int(np.flatnonzero(rows[0].marked[0])[0])
    terms = head.evidence(rows[0].vectors[0], label)
    best = max((term for term in terms if term.kind == "example"), key=lambda term: term.value)
    assert (best.sentence, best.row) == (0, 0)


def test_adding_and_removing_equal_learning_anew(head: LinearHead, rows: list[Rows], names: Prior) -> None:
    step_by_step = fit(rows[:3], names, SETTINGS).adding(rows[3:5]).adding(rows[5:])
    np.testing.assert_allclose(step_by_step.scorer.weights, head.scorer.weights, atol=1e-3)
    np.testing.assert_allclose(
        step_by_step.removing([5]).scorer.weights, fit(rows[:5], names, SETTINGS).scorer.weights, atol=1e-3
    )


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
        names.weights,
        names.bias,
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
        rows.append(choose_rows(vectors, marked, names.weights, names.bias))
    assert fit(rows, names, SETTINGS).factors[0] < 0.5


def test_rejected_spans_lower_the_score_of_their_like(rng: np.random.Generator, names: Prior) -> None:
    vectors = unit(rng.normal(size=(60, SIZE)))
    marked = np.zeros((60, LABELS), bool)
    marked[:3] = np.eye(3, dtype=bool)
    plain = fit([choose_rows(vectors, marked, names.weights, names.bias)], names, SETTINGS)
    told = fit([choose_rows(vectors, marked, names.weights, names.bias, rejected=[10])], names, SETTINGS)
    assert (told.scores(vectors[10:11]) < plain.scores(vectors[10:11])).any()


def test_rejections_alone_lower_a_named_label(names: Prior, rng: np.random.Generator) -> None:
    vectors = unit(rng.normal(size=(60, SIZE)))
    rows = choose_rows(vectors, np.zeros((60, LABELS), bool), names.weights, names.bias, rejected=[4])
    head, plain = fit([rows], names, SETTINGS), fit([], names, SETTINGS)
    assert (head.scores(vectors[4:5]) < plain.scores(vectors[4:5])).all()
    assert np.abs(head.scorer.bias - plain.scorer.bias).max() < 1e-2
    terms = head.evidence(vectors[4], 0)
    assert sum(term.value for term in terms) == pytest.approx(head.scores(vectors[4:5])[0, 0], abs=1e-4)


def test_a_text_that_examples_mark_gets_a_bonus_and_a_term(head: LinearHead, rows: list[Rows]) -> None:
    settings = HeadSettings(**{**json.loads(SETTINGS.to_json()), "match": 1.5})
    head = fit(rows, head.prior, settings)
    vector, matches = rows[0].vectors[:1], np.array([[0.0, 0.5, 1.0]], np.float32)
    np.testing.assert_allclose(head.scores(vector, matches) - head.scores(vector), 1.5 * matches, atol=1e-5)
    terms = head.evidence(vector[0], 2, match=1.0)
    assert sum(term.value for term in terms) == pytest.approx(head.scores(vector, matches)[0, 2], abs=1e-4)
