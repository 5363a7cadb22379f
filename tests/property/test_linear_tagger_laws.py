"""Laws of taggers on the linear head: what examples teach depends on nothing but the examples."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanshot.examples.held_out import HeldOut
from spanshot.linear_tagger import LinearTagger
from spanshot.tagger import Tagger
from spanshot.types import LearnOptions, Sentence, Span, SupportSet
from tiny import NAMES, toy_sentence
from word_encoder import word_model

LABELS = ("city", "person", "day")
TEXTS = ("we saw Oslo and Ada .", "Monday is not Rome", "nobody knows why Carl Friedrich came before New Year or Lima")


@st.composite
def examples(draw: st.DrawFn, least: int = 3) -> list[Sentence]:
    """Example sentences of three labels; the first ones mark each of them."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    sentences = [Sentence((*NAMES[label][0].split(), "it", "is"), _first(label)) for label in LABELS]
    sentences += [toy_sentence(rng, LABELS) for _ in range(draw(st.integers(least, 8)))]
    sentences.append(Sentence(("nothing", "is", "here")))
    rejected = sentences[-2]
    if len(rejected.words) > 1 and rejected.words[-1].isalpha():
        spans = tuple(span for span in rejected.spans if span.end < len(rejected.words))
        own = Span(len(rejected.words) - 1, len(rejected.words), "city")
        sentences[-2] = replace(rejected, spans=spans, rejected=(own,))
    return sentences


def _first(label: str) -> tuple[Span, ...]:
    return (Span(0, len(NAMES[label][0].split()), label),)


def entities_in(tagger: Tagger, texts: tuple[str, ...] = TEXTS) -> list[list[tuple[int, int, str, float]]]:
    low = tagger.with_options(LearnOptions(threshold=0.02))
    return [[(e.start, e.end, e.label, pytest.approx(e.score, abs=2e-3)) for e in low(text)] for text in texts]


@given(examples(), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_the_order_of_examples_does_not_matter(sentences, rng):
    model = word_model()
    shuffled = rng.sample(sentences, len(sentences))
    assert entities_in(model.learn(sentences)) == entities_in(model.learn(shuffled))


@given(examples(), st.integers(3, 6))
@settings(max_examples=20, deadline=None)
def test_adding_examples_equals_learning_all_of_them(sentences, first):
    model = word_model()
    assert entities_in(model.learn(sentences[:first]).add(sentences[first:])) == entities_in(model.learn(sentences))


@given(examples())
@settings(max_examples=20, deadline=None)
def test_the_reasons_of_an_entity_add_up_to_its_score(sentences):
    tagger = word_model().learn(sentences).with_options(LearnOptions(threshold=0.05))
    linear = tagger.sentence_tagger
    assert isinstance(linear, LinearTagger)
    slope, shift = linear.scores.maps(linear.head.counts)
    for text in TEXTS:
        for entity in tagger(text):
            label = tagger.labels.index(entity.label)
            logit = sum(reason.weight for reason in entity.because)
            assert entity.score == pytest.approx(1 / (1 + np.exp(-(slope[label] * logit + shift[label]))), abs=1e-4)


@given(examples())
@settings(max_examples=15, deadline=None)
def test_holding_out_an_example_equals_learning_the_others(sentences):
    model = word_model()
    support = SupportSet.of(sentences)
    held_out = HeldOut.of(model, support, LearnOptions())
    encoded = list(model.method.encoder.encoded)
    for example in held_out.results().tagged:
        text = example.sentence.with_text().text
        others = [s for s in sentences if s.words != example.sentence.words]
        anew = model.learn(SupportSet.of(others, dict.fromkeys(support.labels, "")))
        known = [label for label in support.labels if label in example.labels]
        limits = {**dict.fromkeys(support.labels, 1.0), **{n: anew.sentence_tagger.thresholds[n] for n in known}}
        expected = anew.with_options(LearnOptions(threshold=limits))(text)
        assert [(e.start, e.end, e.label) for e in example.entities] == [(e.start, e.end, e.label) for e in expected]
        assert [e.score for e in example.entities] == pytest.approx([e.score for e in expected], abs=5e-3)
    assert sorted(set(encoded)) == sorted({sentence.words for sentence in sentences})
    assert len(encoded) == len(set(encoded)), "each sentence is encoded once"


def test_a_further_label_equals_learning_all_examples_and_encodes_only_its_own():
    rng = random.Random(5)
    model = word_model()
    tagger = model.learn([toy_sentence(rng, ("city", "person")) for _ in range(8)])
    encoded = len(model.method.encoder.encoded)
    added = tagger.add([Sentence(("we", "left", "on", "Monday"), (Span(3, 4, "day"),))])
    assert model.method.encoder.encoded[encoded:] == [("we", "left", "on", "Monday")]
    assert entities_in(added) == entities_in(model.learn(added.support))


@given(examples())
@settings(max_examples=15, deadline=None)
def test_further_label_names_encode_nothing_and_leave_the_other_labels_as_they_are(sentences):
    model = word_model()
    tagger = model.learn(sentences)
    encoded = len(model.method.encoder.encoded)
    added = tagger.add(labels=["day of the week"]).add(labels={"X1": "dish"})
    assert model.method.encoder.encoded[encoded:] == []
    assert entities_in(added) == entities_in(model.learn(added.support))
    by_name = model.learn(labels={"day of the week": "", "X1": "dish"})
    assert set(added.labels) == {*tagger.labels, *by_name.labels}
    for before in (tagger, by_name):
        columns = [added.labels.index(label) for label in before.labels]
        weights, expected = (each.sentence_tagger.head.scorer.weights for each in (added, before))
        np.testing.assert_allclose(weights[columns], expected, atol=1e-3)
