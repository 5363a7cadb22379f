"""ESD as its paper writes it, as its authors released it, and as it is here."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spanshot.errors import ConfigError
from spanshot.research.methods.esd import Esd, EsdSettings, SpanMemory
from spanshot.research.nn.encoder import Encoder, WordVectors
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.training.settings import RunSettings
from tiny import write_tiny_encoder
from tiny_esd import PAPER, RELEASED, attended, matched, small_esd, some_memory


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    encoder = load_pretrained(str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))).eval()
    return partial(small_esd, encoder)


def head_parameters(**changes: object) -> int:
    """Weights over an encoder of BERT-base's shape; nothing is allocated."""
    with torch.device("meta"):
        transformer = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False)
        method = Esd(Encoder(transformer, pieces=None), EsdSettings(**changes))
    return sum(weight.numel() for name, weight in method.named_parameters() if not name.startswith("encoder."))


@pytest.mark.parametrize(
    ("changes", "weights"),
    [({}, 255_500), (RELEASED, 1_499_916), (PAPER, 315_100)],
    ids=["ours", "released", "paper"],
)
def test_the_heads_over_bert_base_have_as_many_weights_as_documented(changes, weights):
    assert head_parameters(**changes) == weights


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        *((f"{corpus}/esd", PAPER) for corpus in ("snips", "fewnerd")),
        *((f"{corpus}/esd-paper", PAPER) for corpus in ("snips", "fewnerd")),
        *((f"{corpus}/esd-released", RELEASED) for corpus in ("snips", "fewnerd")),
        ("snips/esd-minilm", {"refine": "greedy"}),
        ("fewnerd/esd-minilm", {}),
    ],
)
def test_each_config_has_the_heads_that_its_name_says(config, changes):
    path = Path(__file__).parents[2] / "configs" / f"{config}.toml"
    settings = RunSettings.read(path).model.method
    assert settings == replace(EsdSettings(o_spans=settings.o_spans), **changes)


def feed(module: torch.nn.Module, vectors: Tensor) -> Tensor:
    """FFN(x) = GELU(x W1) W2"""
    first, last = module.feed[0], module.feed[-1]
    hidden = torch.nn.functional.gelu(vectors @ first.weight.T + first.bias)
    return hidden @ last.weight.T + last.bias


@given(st.integers(0, 10_000))
def test_plain_attention_is_what_a_loop_over_the_papers_formulas_gives(make, seed):
    method = make(**PAPER)
    generator = torch.Generator().manual_seed(seed)
    spans, others = torch.randn(5, 8, generator=generator), torch.randn(7, 8, generator=generator)
    with torch.no_grad():
        found = method.cross(spans[None], others[None])[0]
        for span, own in zip(spans, found, strict=True):
            gathered = attended(span, others, 1.0)
            wanted = torch.nn.functional.layer_norm(span + feed(method.cross, gathered), (8,))
            torch.testing.assert_close(own, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("attention", "ends"),
    [("plain", ["feed.3"]), ("projected", ["value", "feed.3"]), ("released", ["output", "feed.3"])],
)
def test_attention_that_starts_as_the_identity_only_normalizes_but_learns_from_the_first_step(make, attention, ends):
    cross = make(attention=attention, identity_start=True).cross
    spans, others, direction = torch.randn(1, 5, 8), torch.randn(1, 7, 8), torch.randn(8)
    enhanced = cross(spans, others)
    torch.testing.assert_close(enhanced, torch.nn.functional.layer_norm(spans, (8,)), atol=1e-4, rtol=1e-4)
    (enhanced * direction).sum().backward()
    for name in ends:
        weight = cross.get_submodule(name).weight
        assert not weight.any()
        assert weight.grad.abs().max() > 0


def test_a_linear_span_head_is_one_map_of_the_first_and_the_last_word(make):
    head = make(**PAPER).span_head
    generator = torch.Generator().manual_seed(0)
    words = WordVectors(torch.randn(4, 32, generator=generator), torch.randn(4, 32, generator=generator), (4,))
    with torch.no_grad():
        found = head(words, [np.array([(1, 4)])]).vectors[0, 0]
        weight = torch.cat([head.from_first.weight, head.from_last.weight], dim=1)
        wanted = weight @ torch.cat([words.first[1], words.last[3]]) + head.from_first.bias
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


@given(st.integers(0, 10_000), st.sampled_from(["dot", "tanh"]), st.sampled_from(["squared", "euclidean"]))
def test_similarity_and_distance_are_as_set(make, seed, similarity, distance):
    memory, query = some_memory(seed, 2, 3)
    changes = {"similarity": similarity, "distance": distance, "scaled": False}
    found = matched(make(isa=False, csa=False, **changes), memory, query)

    def phi(span: Tensor, others: Tensor) -> Tensor:
        products = span * others
        weights = (products if similarity == "dot" else products.tanh()).sum(1).softmax(0)
        return weights @ others

    for span, scores in zip(query, found, strict=True):
        parts_of_o = torch.stack([phi(span, memory.vectors[rows]) for rows in memory.o_rows])
        prototypes = [phi(span, parts_of_o), *(phi(span, memory.vectors[rows]) for rows in memory.label_rows)]
        distances = torch.stack([(span - prototype).norm() for prototype in prototypes])
        wanted = -distances if distance == "euclidean" else -(distances**2)
        torch.testing.assert_close(scores, wanted, atol=1e-3, rtol=1e-4)


def test_a_span_that_equals_its_prototype_leaves_finite_gradients(make):
    method = make(isa=False, csa=False, insa=False, distance="euclidean")
    vectors = torch.randn(3, 8).requires_grad_()
    memory = SpanMemory(("city",), vectors, (slice(0, 1),), (slice(1, 3),))
    method.match(memory, vectors[None, :1], torch.ones(1, 1, dtype=torch.bool)).sum().backward()
    assert torch.isfinite(vectors.grad).all()


def test_word_vectors_are_dropped_at_their_own_rate(make):
    assert make().span_head.word_dropout.p == 0.1
    assert make(vector_dropout=0.5).span_head.word_dropout.p == 0.5
    assert make(vector_dropout=0.5).cross.feed[2].p == 0.1


@pytest.mark.parametrize("name", ["span_head", "attention", "similarity", "distance"])
def test_an_unknown_variant_is_refused_with_the_known_ones(name):
    with pytest.raises(ConfigError, match=rf"{name} must be one of .*; found 'best'"):
        EsdSettings(**{name: "best"})
