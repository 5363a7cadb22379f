"""Paths, marginals and likelihoods against an enumeration of all paths."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spanshot.decode.linear_chain import marginals, viterbi
from spanshot.decode.transitions import Transitions
from spanshot.research.nn.crf import ChainLogits, chain_loss, log_likelihood


def path_score(emissions: np.ndarray, chain: Transitions, path: tuple[int, ...]) -> float:
    total = chain.start[path[0]] + chain.end[path[-1]]
    total += sum(emissions[word, tag] for word, tag in enumerate(path))
    return float(total + sum(chain.step[one, two] for one, two in pairwise(path)))


def all_paths(emissions: np.ndarray) -> list[tuple[int, ...]]:
    words, tags = emissions.shape
    return list(product(range(tags), repeat=words))


@st.composite
def chains(draw: st.DrawFn) -> tuple[np.ndarray, Transitions]:
    words, tags = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.1, 1.0, 20.0]))
    shapes = ((words, tags), (tags,), (tags, tags), (tags,))
    emissions, start, step, end = (rng.normal(scale=scale, size=shape) for shape in shapes)
    return emissions, Transitions(start, step, end)


@given(chains())
def test_the_best_path_is_the_best_of_all(drawn):
    emissions, chain = drawn
    best = max(path_score(emissions, chain, path) for path in all_paths(emissions))
    assert path_score(emissions, chain, tuple(viterbi(emissions, chain))) == pytest.approx(best)


@given(chains())
def test_marginals_are_sums_over_paths(drawn):
    emissions, chain = drawn
    paths = all_paths(emissions)
    weights = np.array([path_score(emissions, chain, path) for path in paths])
    weights = np.exp(weights - np.logaddexp.reduce(weights))
    wanted = np.zeros_like(emissions)
    for path, weight in zip(paths, weights, strict=True):
        wanted[np.arange(len(path)), path] += weight
    np.testing.assert_allclose(marginals(emissions, chain), wanted, atol=1e-9)


@given(chains())
def test_likelihoods_add_up_to_one_over_all_paths_and_are_those_of_brute_force(drawn):
    emissions, chain = drawn
    paths = all_paths(emissions)
    scores = np.array([path_score(emissions, chain, path) for path in paths])
    tensors = ChainLogits(*(torch.from_numpy(part) for part in (chain.start, chain.step, chain.end)))
    many = torch.from_numpy(emissions).expand(len(paths), -1, -1)
    gold = torch.tensor(paths)
    found = log_likelihood(many, gold, torch.ones_like(gold, dtype=torch.bool), tensors).numpy()
    assert np.exp(found).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found, scores - np.logaddexp.reduce(scores), atol=1e-8)


@given(chains(), st.integers(1, 3))
def test_padding_does_not_change_a_likelihood(drawn, more):
    emissions, chain = drawn
    words, tags = emissions.shape
    tensors = ChainLogits(*(torch.from_numpy(part) for part in (chain.start, chain.step, chain.end)))
    gold = torch.arange(words).remainder(tags)
    alone = log_likelihood(
        torch.from_numpy(emissions)[None], gold[None], torch.ones(1, words, dtype=torch.bool), tensors
    )
    padded = torch.full((1, words + more, tags), 7.0, dtype=torch.float64)
    padded[0, :words] = torch.from_numpy(emissions)
    longer = torch.zeros(1, words + more, dtype=torch.long)
    longer[0, :words] = gold
    mask = torch.arange(words + more)[None] < words
    assert log_likelihood(padded, longer, mask, tensors).item() == pytest.approx(alone.item())


def test_the_likelihood_has_gradients_for_emissions_and_every_transition():
    torch.manual_seed(0)
    emissions = torch.randn(2, 3, 2, requires_grad=True)
    parts = [torch.randn(shape, requires_grad=True) for shape in ((2,), (2, 2), (2,))]
    gold = torch.tensor([[0, 1, 1], [1, 0, 0]])
    log_likelihood(emissions, gold, torch.ones(2, 3, dtype=torch.bool), ChainLogits(*parts)).sum().backward()
    assert all(part.grad is not None and part.grad.abs().max() > 0 for part in (emissions, *parts))


@given(chains(), st.integers(1, 4))
def test_the_loss_is_the_mean_over_sentences_of_the_surprise_per_word(drawn, fewer):
    emissions, chain = drawn
    words, tags = emissions.shape
    shorter = min(words, fewer)
    tensors = ChainLogits(*(torch.from_numpy(part) for part in (chain.start, chain.step, chain.end)))
    paths = [tuple(number % tags for number in range(size)) for size in (words, shorter)]
    surprises = []
    for path in paths:
        own = emissions[: len(path)]
        every = np.logaddexp.reduce([path_score(own, chain, other) for other in all_paths(own)])
        surprises.append((every - path_score(own, chain, path)) / len(path))
    found = chain_loss(torch.from_numpy(np.stack([emissions, emissions])), paths, tensors)
    assert found.item() == pytest.approx(np.mean(surprises), abs=1e-8)


def test_a_sentence_with_a_tag_that_has_no_score_is_no_part_of_the_loss():
    emissions = torch.zeros(2, 2, 3)
    emissions[:, :, 0] = -torch.inf
    emissions.requires_grad_()
    none = ChainLogits(torch.zeros(3), torch.zeros(3, 3), torch.zeros(3))
    loss = chain_loss(emissions, [(1, 2), (0, 1)], none)
    loss.backward()
    assert loss.item() == pytest.approx(np.log(2) / 2)  # two tags are left, and one of two sentences counts
    assert emissions.grad is not None
    assert torch.isfinite(emissions.grad).all()
    assert emissions.grad[1].abs().max() == 0
