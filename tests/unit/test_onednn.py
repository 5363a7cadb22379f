"""Linear layers computed by oneDNN: the same products and gradients as torch's own, whatever the processor."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from spanshot.research.nn import onednn
from spanshot.research.nn.pretrained import load_pretrained, set_dropout
from spanshot.types import Sentence
from tiny import write_tiny_encoder

pytestmark = pytest.mark.skipif(
    not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")),
    reason="this build of torch has no oneDNN",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def use_onednn(monkeypatch):
    """Choose whether `linear` computes by oneDNN."""
    return lambda faster: monkeypatch.setattr(onednn, "_is_faster", lambda: faster)


def gradients(layer: nn.Linear, rows: Tensor, weights: Tensor) -> list[Tensor]:
    """Return the products of ``rows`` and the gradients of their weighted sum."""
    rows = rows.detach().requires_grad_()
    layer.zero_grad()
    products = onednn.linear(layer, rows)
    (products * weights).sum().backward()
    of_parameters = [parameter.grad.clone() for parameter in layer.parameters()]
    return [products.detach(), rows.grad, *of_parameters]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("count", "width", "out"), [(1, 1, 1), (7, 5, 3), (48, 384, 1536), (33, 1536, 384)])
def test_products_and_gradients_are_those_of_torch(use_onednn, bias, count, width, out):
    torch.manual_seed(0)
    layer = nn.Linear(width, out, bias=bias)
    rows, weights = torch.randn(count, width), torch.randn(out, count).t()  # gradients need not be contiguous
    use_onednn(faster=True)
    by_onednn = gradients(layer, rows, weights)
    use_onednn(faster=False)
    for ours, expected in zip(by_onednn, gradients(layer, rows, weights), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


def test_frozen_weights_get_no_gradient(use_onednn):
    use_onednn(faster=True)
    layer = nn.Linear(4, 3).requires_grad_(False)
    rows = torch.randn(5, 4, requires_grad=True)
    onednn.linear(layer, rows).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is None
    torch.testing.assert_close(rows.grad, layer.weight.sum(0).expand(5, 4))


def test_other_precisions_are_left_to_torch(use_onednn):
    use_onednn(faster=True)
    layer = nn.Linear(4, 3).double()
    rows = torch.randn(5, 4, dtype=torch.float64)
    assert torch.equal(onednn.linear(layer, rows), F.linear(rows, layer.weight, layer.bias))


@given(st.integers(1, 100_000))
def test_rounding_up_adds_at_most_a_sixteenth(count):
    rounded = onednn.rounded_up(count)
    assert count <= rounded < count + max(8, count / 16 + 1)


def test_there_are_few_different_numbers_of_rows():
    assert len({onednn.rounded_up(count) for count in range(1, 4097)}) < 150


@pytest.mark.parametrize("pairs", [False, True])
def test_training_has_the_same_vectors_and_gradients_with_and_without_onednn(folder, use_onednn, pairs):
    encoder = load_pretrained(str(folder)).train()
    set_dropout(encoder, 0.0, 0.0)
    sentences = [Sentence(tuple(text.split())) for text in ("oslo rome lima in soupx", "x", " ".join(["ada"] * 90))]
    outcomes = []
    for faster in (True, False):
        use_onednn(faster=faster)
        encoder.zero_grad()
        words = encoder.pairs(list(zip(sentences, sentences[::-1], strict=True))) if pairs else encoder(sentences)
        words.first.square().sum().backward()
        outcomes.append([words.last.detach(), *(w.grad.clone() for w in encoder.parameters() if w.grad is not None)])
    for ours, expected in zip(*outcomes, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-4)
