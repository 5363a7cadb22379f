"""The engine on onnxruntime gives the vectors, priors and entities of the torch modules that it was exported from."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from spanshot.checkpoint import packaged_folder
from spanshot.decode.greedy import best_without_conflicts
from spanshot.decode.scores import SpanScores
from spanshot.engine.spans import candidate_widths, candidates
from spanshot.learner import LinearLearner
from spanshot.model import Model, embedded_model
from spanshot.research import checkpoint
from spanshot.research.export_model import engine_files
from spanshot.research.learning.method import evaluating
from spanshot.research.methods.linear import Linear
from spanshot.research.training.settings import RunSettings
from spanshot.types import LearnOptions, Sentence, Span, SupportSet
from tiny import NAMES, toy_episodes, toy_sentence, write_tiny_encoder

TOLERANCE = 1e-4
WORDS = [
    "the",
    "of",
    "Oslo",
    "1984",
    ",",
    ".",
    "Grace-Hopper",
    "pharmacokinetics",
    "mg",
    "naïve",
    "東",
    "\x07",
    "don't",
    "(b)",
    "re-entered",
    "Zürich",
    "##ing",
    "e-mail",
]


def random_sentences(count: int, seed: int, longest: int = 40) -> list[Sentence]:
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyzäöéß0123456789-/"
    sentences = []
    for _ in range(count):
        words = [
            rng.choice(WORDS) if rng.random() < 0.5 else "".join(rng.choices(letters, k=rng.randint(1, 12)))
            for _ in range(rng.randint(1, longest))
        ]
        sentences.append(Sentence(tuple(words)))
    return sentences


def check_vectors(method: Linear, learner: LinearLearner, sentences: list[Sentence]) -> None:
    bounds = [candidates(len(sentence), candidate_widths()) for sentence in sentences]
    computed = dict(learner.encoder.encode([sentence.words for sentence in sentences], bounds))
    with evaluating(method):
        expected = method.span_vectors(sentences, bounds)
    worst = max(abs(expected[number] - computed[number].vectors).max() for number in range(len(sentences)))
    assert worst < TOLERANCE


@pytest.fixture(scope="module")
def packaged() -> tuple[Linear, LinearLearner]:
    method, learner = checkpoint.load(packaged_folder()).method, embedded_model().method
    assert isinstance(method, Linear)
    assert isinstance(learner, LinearLearner)
    return method, learner


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> tuple[Linear, LinearLearner]:
    folder = write_tiny_encoder(tmp_path_factory.mktemp("encoder"))
    settings = RunSettings.of(
        {
            "method": {"name": "linear", "size": 16, "hidden": 24},
            "data": {"kind": "episodes", "train": "none", "dev": "none"},
            "encoder": {"name": str(folder)},
        }
    )
    method = checkpoint.new_method(settings).eval()
    assert isinstance(method, Linear)
    return method, LinearLearner.open(engine_files(method), threads=1)


def test_vectors_of_a_thousand_sentences_are_those_of_torch(tiny):
    check_vectors(*tiny, random_sentences(1000, seed=1))


def test_vectors_of_the_packaged_model_are_those_of_torch(packaged):
    check_vectors(*packaged, random_sentences(40, seed=2))


def test_sentences_longer_than_the_encoder_reads_are_those_of_torch(tiny):
    check_vectors(*tiny, random_sentences(5, seed=3, longest=400))


def test_priors_of_names_are_those_of_torch(packaged):
    method, learner = packaged
    names = ["person", "date from", "a dose of a drug, with its unit", "naïve"]
    with torch.no_grad():
        expected = method.prior([*names, None])
    prior = learner.encoder.encode_names([*names, ""])
    assert np.allclose(prior.weights, expected.weights, atol=TOLERANCE)
    assert np.allclose(prior.bias, expected.bias, atol=TOLERANCE)
    assert prior.named == expected.named


def entities_of_torch(
    method: Linear, learner: LinearLearner, support: SupportSet, query: list[Sentence]
) -> list[set[Span]]:
    """Decode the scores of the torch method as the engine does."""
    tagger = learner.fit(support)

    entities = []
    with evaluating(method):
        memory = method.remember(support)
        scores: list[SpanScores] = method.scores(memory, query)
    for sentence in scores:
        logits = np.asarray(sentence.scores)[:, 1:]
        rows, labels = np.nonzero(logits >= tagger.least_logits)
        bounds = [(start, end) for start, end in sentence.bounds[rows].tolist()]
        chosen = best_without_conflicts(bounds, labels.tolist(), logits[rows, labels].tolist())
        entities.append({Span(*sentence.bounds[rows[at]].tolist(), support.labels[labels[at]]) for at in chosen})
    return entities


def test_entities_are_those_of_torch(packaged):
    method, learner = packaged
    for seed in range(3):
        (episode,) = toy_episodes(1, labels=("city", "person", "dish"), support=5, query=8, seed=seed)
        query = [sentence.without_spans() for sentence in episode.query]
        entities = [{scored.span for scored in spans} for spans in learner.fit(episode.support)(query)]
        assert entities == entities_of_torch(method, learner, episode.support, query)
        assert any(entities)


def test_an_exported_model_learns_saves_and_loads(tiny, tmp_path):
    import spanshot

    _, learner = tiny
    rng = random.Random(4)
    labels = ("city", "day")
    shown = [Sentence((NAMES[label][0],), (Span(0, 1, label),)) for label in labels]
    support = SupportSet.of([*shown, *(toy_sentence(rng, labels) for _ in range(4))])
    tagger = Model(learner).learn_support(support, LearnOptions(threshold=0.0))
    tagger.save(tmp_path / "mine")
    loaded = spanshot.load(tmp_path / "mine")
    text = "we saw Oslo and Friday again"
    assert [(e.start, e.end, e.label) for e in loaded(text)] == [(e.start, e.end, e.label) for e in tagger(text)]
    assert spanshot.load_model(tmp_path / "mine") == Model(learner)
