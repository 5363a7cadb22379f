"""Laws of learning: `add` and `remove` equal learning from scratch, and the order of examples does not matter."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spanshot
from spanshot.model import embedded_model
from spanshot.types import LearnOptions, Sentence, Span, SupportSet
from toy_sentences import filled_template

NAMES = {
    "city": ("Oslo", "Rome", "New York", "Cape Town"),
    "person": ("Ada", "Grace Hopper", "Alan", "Mary Ann"),
    "dish": ("soup", "green salad", "apple pie"),
}
TEMPLATES = ("we saw {} and {} today", "{} is not {}", "they asked for {} with {} again", "{} came back !")
TEXT = "Niels came from Lima with a bowl of rice and met Mary Ann in New York"


def sentence(rng: random.Random, labels: tuple[str, ...]) -> Sentence:
    filled = filled_template(rng, labels, TEMPLATES, NAMES, share_marked=0.8)
    words, spans = filled.words, filled.spans
    rejected = ()
    if rng.random() < 0.3 and (
        free := [at for at in range(len(words)) if not any(s.start <= at < s.end for s in spans)]
    ):
        at = rng.choice(free)
        rejected = (Span(at, at + 1, labels[0]),)
    return Sentence(words, spans, rejected=rejected)


def examples(seed: int, count: int, labels: tuple[str, ...] = tuple(NAMES)) -> list[Sentence]:
    rng = random.Random(seed)
    one_of_each = [Sentence((NAMES[label][0], "it", "is"), (Span(0, 1, label),)) for label in labels]
    return [*one_of_each, *(sentence(rng, labels) for _ in range(count))]


def logits(tagger: spanshot.Tagger) -> dict[tuple[int, int, str], float]:
    low = tagger.with_options(LearnOptions(threshold=0.01, nested=tagger.options.nested))
    return {(entity.start, entity.end, entity.label): entity.score for entity in low(TEXT)}


def close(first: spanshot.Tagger, second: spanshot.Tagger) -> None:
    ours, theirs = logits(first), logits(second)
    assert ours.keys() == theirs.keys()
    for span, score in ours.items():
        assert score == pytest.approx(theirs[span], abs=2e-3)
    assert [(e.start, e.end, e.label) for e in first(TEXT)] == [(e.start, e.end, e.label) for e in second(TEXT)]


seeds = st.integers(0, 10**6)


@settings(max_examples=8, deadline=None)
@given(seeds, st.integers(0, 4), st.integers(1, 3))
def test_adding_equals_learning_anew(seed, before, after):
    old, new = examples(seed, before), examples(seed + 1, after)
    model = embedded_model()
    added = model.learn(old).add(new)
    assert added == model.learn([*old, *new])
    close(added, model.learn([*old, *new]))


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_adding_a_new_label_equals_learning_its_support_anew(seed):
    model = embedded_model()
    added = model.learn(examples(seed, 2, ("city", "person"))).add(examples(seed, 1, ("dish",)))
    assert added.labels == ("city", "dish", "person")
    close(added, model.learn_support(added.support, added.options))


@settings(max_examples=5, deadline=None)
@given(seeds, st.sampled_from(sorted(NAMES)))
def test_removing_equals_learning_anew(seed, label):
    model = embedded_model()
    learned = examples(seed, 3)
    others = [other for other in NAMES if other != label]
    close(model.learn(learned).remove(label), model.learn([one.with_labels(others) for one in learned]))


@settings(max_examples=5, deadline=None)
@given(seeds, st.randoms(use_true_random=False))
def test_the_order_of_examples_and_labels_does_not_matter(seed, rng):
    model = embedded_model()
    learned = examples(seed, 4)
    shuffled = list(learned)
    rng.shuffle(shuffled)
    labels = list(NAMES)
    rng.shuffle(labels)
    close(model.learn(learned), model.learn_support(SupportSet(tuple(labels), tuple(shuffled))))


def test_other_texts_of_a_batch_do_not_matter():
    tagger = embedded_model().learn(examples(5, 3))
    texts = [TEXT, "Oslo", "they asked for soup " * 30, TEXT]
    together = [[(e.start, e.end, e.label) for e in entities] for entities in tagger.pipe(texts)]
    assert together == [[(e.start, e.end, e.label) for e in tagger(text)] for text in texts]
