from __future__ import annotations

import numpy as np
import pytest
import torch

from spanshot.decode.transitions import count_kinds, kinds, kinds_of_steps, log_probabilities, spread
from spanshot.research.nn.crf import ChainLogits
from spanshot.tags import tags_of_labels

TAGS = ("O", "B-a", "I-a", "B-b", "I-b")


def named(values: dict[str, float], scheme: str) -> np.ndarray:
    return np.array([values.get(kind, 0.0) for kind in kinds(scheme)])


@pytest.mark.parametrize(
    ("scheme", "tags"), [("io", ("O", "a", "b")), ("bio", TAGS), ("bioes", tags_of_labels("ab", "bioes"))]
)
def test_every_step_between_tags_of_a_scheme_has_a_kind_and_every_kind_occurs(scheme, tags):
    found = kinds_of_steps(tags, scheme)
    assert {int(n) for part in found for n in part.ravel()} == set(range(len(kinds(scheme))))


def test_a_table_is_expanded_by_kind():
    values = named(
        {"B>I same": 1.0, "B>I other": 2.0, "I>B same": 3.0, "O>B": 4.0, "start>I": 5.0, "I>end": 6.0}, "bio"
    )
    found = ChainLogits.of_kinds(torch.tensor(values), TAGS, "bio").transitions()
    at = {tag: number for number, tag in enumerate(TAGS)}
    assert found.step[at["B-a"], at["I-a"]] == 1.0
    assert found.step[at["B-a"], at["I-b"]] == 2.0
    assert found.step[at["I-b"], at["B-b"]] == 3.0
    assert found.step[at["I-b"], at["B-a"]] == 0.0
    assert found.step[at["O"], at["B-b"]] == 4.0
    assert found.start[at["I-a"]] == 5.0
    assert found.end[at["I-b"]] == 6.0


def test_a_learned_table_gets_gradients_through_its_expansion():
    table = torch.zeros(len(kinds("bio")), requires_grad=True)
    ChainLogits.of_kinds(table, TAGS, "bio").step.sum().backward()
    wanted = named({"B>I same": 2.0, "B>I other": 2.0, "O>O": 1.0, "O>B": 2.0}, "bio")
    for kind in ("B>I same", "B>I other", "O>O", "O>B"):
        number = kinds("bio").index(kind)
        assert table.grad[number] == wanted[number]


def test_counts_are_those_of_a_hand_count():
    counted = count_kinds([["O", "a", "a", "b"], ["a", "O"]], "io")
    wanted = {"start>O": 1, "start>I": 1, "O>I": 1, "O>end": 1, "I>I same": 1, "I>I other": 1, "I>end": 1, "I>O": 1}
    assert counted.tolist() == named(wanted, "io").tolist()


def test_a_label_may_have_any_name_even_that_of_an_edge():
    assert (
        count_kinds([["start", "end"]], "io").tolist()
        == named({"start>I": 1, "I>I other": 1, "I>end": 1}, "io").tolist()
    )


def test_probabilities_of_one_source_add_up_to_one_and_none_is_zero():
    table = log_probabilities(count_kinds([["O", "a", "O"]], "io"), "io")
    for source in ("start", "O", "I"):
        own = [p for kind, p in zip(kinds("io"), np.exp(table), strict=True) if kind.startswith(f"{source}>")]
        assert sum(own) == pytest.approx(1.0)
        assert min(own) > 0


@pytest.mark.parametrize("labels", [1, 2, 5])
@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_shared_out_probabilities_add_up_to_one_for_every_tag(labels, temperature):
    table = log_probabilities(count_kinds([["O", "a", "a", "O", "b"]], "io"), "io")
    found = spread(table, ("O", *map(str, range(labels))), "io", temperature)
    assert np.exp(found.start).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(found.step).sum(1) + np.exp(found.end), 1.0)


def test_with_a_temperature_of_one_labels_share_the_probability_of_their_kind():
    table = log_probabilities(count_kinds([["O", "a", "a", "O", "b"]], "io"), "io")
    found = spread(table, ("O", "x", "y", "z"), "io")
    kind = dict(zip(kinds("io"), np.exp(table), strict=True))
    assert np.exp(found.step[0, 1:]).sum() == pytest.approx(kind["O>I"])
    assert np.exp(found.step[1, 1]) == pytest.approx(kind["I>I same"])
    assert np.exp(found.step[1, 2]) == pytest.approx(kind["I>I other"] / 2)


def test_a_low_temperature_evens_probabilities_out():
    table = log_probabilities(count_kinds([["O"] * 50 + ["a"]], "io"), "io")
    sharp, even = (spread(table, ("O", "a"), "io", temperature) for temperature in (1.0, 0.1))
    assert np.ptp(even.step[0]) < np.ptp(sharp.step[0])
