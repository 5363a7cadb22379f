"""The engine on exported graphs against the torch method that was exported."""

import numpy as np
import pytest
import torch

from spanshot.learner import LinearLearner
from spanshot.research.export_model import engine_files
from spanshot.research.methods.linear import Linear, LinearSettings
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.nn.spans import bounds_up_to
from spanshot.types import Sentence
from tiny import write_tiny_encoder

TEXTS = ("Oslo and quizzical Ada met Xerxes", "zyx", "they asked for wxyz with bread today and tomorrow")
"""Most words have several pieces."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = Linear(load_pretrained(str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))), LinearSettings())
    return method.eval(), LinearLearner.open(engine_files(method))


def test_span_vectors_of_the_engine_equal_those_of_the_method(exported):
    method, learner = exported
    sentences = [Sentence(tuple(text.split())) for text in TEXTS]
    bounds = [bounds_up_to(len(sentence), 4) for sentence in sentences]
    expected = method.span_vectors(sentences, bounds)
    found = dict(learner.encoder.encode([sentence.words for sentence in sentences], bounds))
    for number, vectors in enumerate(expected):
        np.testing.assert_allclose(found[number].vectors, vectors, atol=1e-4)


def test_priors_of_names_equal_those_of_the_method(exported):
    method, learner = exported
    expected = method.prior(["city", None, "xyzzy of the day"])
    found = learner.encoder.encode_names(["city", "", "xyzzy of the day"])
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-3)
    np.testing.assert_allclose(found.bias, expected.bias, atol=1e-3)
    assert found.named == expected.named
