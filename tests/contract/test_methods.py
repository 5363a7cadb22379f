"""What every method promises. A new method in METHODS is held to it without a line being added here."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from spanshot.decode.scores import SpanScores
from spanshot.research.checkpoint import load, new_method, read_record, save
from spanshot.research.experiments.evaluate import evaluate
from spanshot.research.methods import METHODS, Method, MetricMethod
from spanshot.research.training.drawing import in_process
from spanshot.research.training.loop import Stage
from spanshot.research.training.settings import RunSettings, StageSettings
from spanshot.types import Episode, ScoredSpan, Sentence, Span, SupportSet
from tiny import toy_episodes, write_tiny_encoder
from tiny_esd import PAPER, RELEASED

SMALL = {  # of these settings each method gets those that it has
    "size": 16,
    "longest": 4,
    "finetune_steps": 40,
    "finetune_rate": 2e-3,
    "finetune_head_rate": 5e-3,
    "negatives": 0,
}
OWN: dict[str, dict[str, float]] = {"convex": {"finetune_steps": 10, "finetune_head_rate": 1e-3}}
STEPS = {"mrc": 300, "convex": 200}  # they first have to learn that the question matters; 80 otherwise
STEPS_WITH_DROPOUT = 150  # on word vectors, half of which are dropped in the released code
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "esd as in the paper": ("esd", PAPER),
    "esd as released": ("esd", RELEASED),
}
EXPLAINING = {"esd", "retriever", "nnshot", "structshot"}
EPISODE = toy_episodes(1, labels=("city", "person", "dish"), support=6, query=4, seed=3)[0]
OTHER = toy_episodes(1, labels=("day", "dish"), support=4, query=3, seed=5)[0]
Found = list[list[ScoredSpan]]


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory):
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module", params=[*METHODS, *VARIANTS])
def settings(request, encoder_folder) -> RunSettings:
    kind, changes = VARIANTS.get(request.param, (request.param, {}))
    fields = {field.name for field in dataclasses.fields(METHODS[kind].Settings)}
    own = {name: value for name, value in SMALL.items() if name in fields} | OWN.get(kind, {}) | changes
    return RunSettings.of(
        {
            "method": {"name": kind, **own},
            "data": {"kind": "episodes", "train": "train.jsonl", "dev": "dev.jsonl"},
            "encoder": {"name": str(encoder_folder)},
        }
    )


@pytest.fixture(scope="module")
def overfitted(settings) -> Method:
    """A method that has seen one episode many times; tests that change it take a copy."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        method = new_method(settings)
    method.compute_statistics([*EPISODE.support.sentences, *EPISODE.query])
    steps = STEPS.get(settings.model.method_name, 80)
    if getattr(settings.model.method, "vector_dropout", 0.0) >= 0.5:
        steps = STEPS_WITH_DROPOUT
    rates = StageSettings(steps=steps, batch=1, encoder_rate=2e-3, head_rate=4e-3)
    for _ in Stage(method, in_process(lambda rng: EPISODE), rates, 1, Accelerator(cpu=True)).steps():
        pass
    return method.eval()


@pytest.fixture
def method(overfitted) -> Method:
    return copy.deepcopy(overfitted)


def plain(sentences: tuple[Sentence, ...]) -> list[Sentence]:
    return [sentence.without_spans() for sentence in sentences]


QUERY = plain(EPISODE.query)


def assert_same(found: Found, wanted: Found, tolerance: float = 1e-5) -> None:
    """The same spans in every sentence, with the same scores but for rounding; and not just nothing."""
    assert [[s.span for s in own] for own in found] == [[s.span for s in own] for own in wanted]
    for own, other in zip(found, wanted, strict=True):
        assert [s.score for s in own] == pytest.approx([s.score for s in other], abs=tolerance)
    assert any(wanted)


def assert_fits(found: Found, sentences: list[Sentence], support: SupportSet) -> None:
    assert len(found) == len(sentences)
    for own, sentence in zip(found, sentences, strict=True):
        for scored in own:
            assert 0 <= scored.span.start < scored.span.end <= len(sentence)
            assert scored.span.label in support.labels
            assert 0 <= scored.score <= 1


def snapshot(method: Method) -> dict[str, Any]:
    """All that a call could leave behind: weights, modes, attributes, gradients, random states."""
    return {
        "weights": {name: value.clone() for name, value in method.state_dict().items()},
        "modes": {name: module.training for name, module in method.named_modules()},
        "attributes": {name: sorted(vars(module)) for name, module in method.named_modules()},
        "gradients": {name: weight.grad is not None for name, weight in method.named_parameters()},
        "trainable": {name: weight.requires_grad for name, weight in method.named_parameters()},
        "random": [torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state())],
        "grad mode": [torch.is_grad_enabled(), torch.is_inference_mode_enabled()],
    }


def assert_unchanged(before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = before.pop("weights"), after.pop("weights")
    assert old.keys() == new.keys()
    assert [name for name in old if not torch.equal(old[name], new[name])] == []
    assert before == after


# Learning


def test_it_learns_one_episode_by_heart(overfitted):
    assert evaluate(overfitted, [EPISODE]).micro_f1 == 1.0
    with torch.no_grad():
        assert overfitted.episode_loss(EPISODE).item() < 0.1


def test_the_loss_reaches_every_trainable_weight(method):
    method.train()
    method.episode_loss(EPISODE).backward()
    unreached = [
        name
        for name, weight in method.named_parameters()
        if weight.requires_grad and (weight.grad is None or not weight.grad.abs().max() > 0)
    ]
    assert unreached == []
    assert all(torch.isfinite(weight.grad).all() for weight in method.parameters() if weight.requires_grad)


def test_the_loss_is_one_finite_number_and_does_not_look_at_the_random_state_outside_training(method):
    once, again = method.episode_loss(EPISODE), method.episode_loss(EPISODE)
    assert once.shape == ()
    assert torch.isfinite(once)
    assert torch.equal(once, again)


# Nothing is kept


@pytest.mark.parametrize("training", [True, False])
def test_fitting_changes_nothing_about_the_method(method, training):
    method.train(training)
    before = snapshot(method)
    method.fit(EPISODE.support)
    assert_unchanged(before, snapshot(method))


@pytest.mark.parametrize("training", [True, False])
def test_tagging_changes_nothing_about_the_method(method, training):
    method.train(training)
    tagger = method.fit(EPISODE.support)
    before = snapshot(method)
    first = tagger(QUERY)
    assert_unchanged(before, snapshot(method))
    assert_same(tagger(QUERY), first, tolerance=0)


def test_fitting_in_the_midst_of_training_gives_the_same_tagger_as_after_it(method):
    wanted = method.eval().fit(EPISODE.support)(QUERY)
    assert_same(method.train().fit(EPISODE.support)(QUERY), wanted)


def test_two_taggers_of_one_method_live_side_by_side(method):
    alone = method.fit(EPISODE.support)(QUERY), method.fit(OTHER.support)(plain(OTHER.query))
    first, second = method.fit(EPISODE.support), method.fit(OTHER.support)
    assert_same(first(QUERY), alone[0])
    assert second(plain(OTHER.query)) == alone[1]
    assert_same(first(QUERY), alone[0])


def test_training_goes_on_after_tagging(method):
    tagger = method.fit(EPISODE.support)
    tagger(QUERY)
    method.train()
    method.episode_loss(EPISODE).backward()
    assert any(weight.grad is not None for weight in method.parameters())


@pytest.mark.parametrize("send", [lambda t: pickle.loads(pickle.dumps(t)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_tagger_can_be_sent_elsewhere_and_answers_the_same(method, send):
    tagger = method.fit(EPISODE.support)
    wanted = tagger(QUERY)
    sent = send(tagger)
    for weight in method.parameters():
        weight.data.zero_()
    assert_same(sent(QUERY), wanted)


def test_a_saved_method_tags_the_same_once_loaded(method, settings, tmp_path):
    if isinstance(method, MetricMethod):
        method.o_bias.fill_(1.5)
    wanted = method.fit(EPISODE.support)(QUERY)
    save(tmp_path / "best", method, settings.model, record={"result": {"dev_f1": 1.0}})
    loaded = load(tmp_path / "best")
    assert loaded.settings == settings.model
    assert read_record(tmp_path / "best") == {"result": {"dev_f1": 1.0}}
    assert_same(loaded.method.fit(EPISODE.support)(QUERY), wanted)
    assert not any(module.training for module in loaded.method.modules())


def test_a_saved_method_goes_on_learning_the_same_once_loaded(method, settings, tmp_path):
    save(tmp_path / "best", method, settings.model)
    loaded = load(tmp_path / "best").method
    assert loaded.episode_loss(OTHER).item() == pytest.approx(method.episode_loss(OTHER).item(), abs=1e-5)


# Only the sentence and the support set count


def test_what_is_marked_in_a_sentence_is_not_looked_at(method):
    tagger = method.fit(EPISODE.support)
    assert_same(tagger(list(EPISODE.query)), tagger(QUERY), tolerance=0)


def test_a_sentence_is_tagged_alone_as_among_others(method):
    tagger = method.fit(EPISODE.support)
    company = [*plain(OTHER.query), Sentence(("word",) * 40), Sentence(("x",))]
    sentences = [*company, *QUERY, *company]
    assert_same(tagger(sentences), [tagger([sentence])[0] for sentence in sentences])


def test_a_raw_score_is_the_same_alone_as_among_others(method):
    if not isinstance(method, MetricMethod):
        pytest.skip("not a metric method")
    company = [*plain(OTHER.query), Sentence(("word",) * 40), Sentence(("x",))]
    tagger = method.fit(EPISODE.support)
    sentences = [*company, *QUERY]
    for words in (1, 50, 1000):
        for number, scores in replace(tagger, max_batch_words=words).scores(sentences):
            ((_, alone),) = tagger.scores([sentences[number]])
            if isinstance(scores, SpanScores):
                assert np.array_equal(scores.bounds, alone.bounds)
                assert scores.labels == alone.labels
            else:
                assert scores.tags == alone.tags
            np.testing.assert_allclose(scores.scores, alone.scores, rtol=1e-5, atol=1e-5)


def test_the_order_of_labels_does_not_matter(method):
    wanted = method.fit(EPISODE.support)(QUERY)
    turned = SupportSet(EPISODE.support.labels[::-1], EPISODE.support.sentences)
    assert_same(method.fit(turned)(QUERY), wanted)
    loss = method.episode_loss(replace(EPISODE, support=turned)).item()
    assert loss == pytest.approx(method.episode_loss(EPISODE).item(), abs=1e-5)


def test_the_order_of_support_sentences_does_not_matter(method):
    wanted = method.fit(EPISODE.support)(QUERY)
    turned = SupportSet(EPISODE.support.labels, EPISODE.support.sentences[::-1])
    assert_same(method.fit(turned)(QUERY), wanted)


def renamed(sentence: Sentence, names: dict[str, str]) -> Sentence:
    return Sentence(sentence.words, tuple(replace(span, label=names[span.label]) for span in sentence.spans))


def test_the_names_of_labels_do_not_matter(method):
    if method.reads_label_names:
        pytest.skip("reads label names")
    names = {"city": "x-1", "person": "city", "dish": "zzz"}
    support = SupportSet(
        tuple(names[label] for label in EPISODE.support.labels),
        tuple(renamed(sentence, names) for sentence in EPISODE.support.sentences),
    )
    wanted = [
        [replace(scored, span=replace(scored.span, label=names[scored.span.label])) for scored in own]
        for own in method.fit(EPISODE.support)(QUERY)
    ]
    assert_same(method.fit(support)(QUERY), wanted)


def test_each_decision_names_examples_of_its_label_where_examples_decide(method):
    if method.name not in EXPLAINING:
        pytest.skip("no single example decides")
    found = method.fit(EPISODE.support)(QUERY)
    for scored in (one for own in found for one in own):
        assert 1 <= len(scored.because) <= 3
        for evidence in scored.because:
            assert evidence.span in EPISODE.support.sentences[evidence.sentence].spans
            assert evidence.span.label == scored.span.label
            assert 0 <= evidence.weight <= 1
        weights = [evidence.weight for evidence in scored.because]
        assert weights == sorted(weights, reverse=True)
        assert sum(weights) <= 1 + 1e-6


# Odd shapes


def tag_and_learn(method: Method, episode: Episode) -> Found:
    """Tag the query; and a step of learning from the episode must leave finite gradients."""
    sentences = plain(episode.query)
    found = method.fit(episode.support)(sentences)
    assert_fits(found, sentences, episode.support)
    method.train()
    loss = method.episode_loss(episode)
    assert torch.isfinite(loss)
    loss.backward()
    assert all(torch.isfinite(weight.grad).all() for weight in method.parameters() if weight.grad is not None)
    return found


def one(text: str, *spans: tuple[int, int, str]) -> Sentence:
    return Sentence(tuple(text.split()), tuple(Span(*span) for span in spans))


def test_found_spans_lie_within_their_sentence_and_have_labels_of_the_support(method):
    for support in (EPISODE.support, OTHER.support):
        sentences = [*QUERY, *plain(OTHER.query), Sentence(("Oslo",)), Sentence(("!", "!"))]
        assert_fits(method.fit(support)(sentences), sentences, support)


def test_no_sentence_gives_no_answer(method):
    assert method.fit(EPISODE.support)([]) == []


def test_a_support_set_without_any_span_outside_entities_works(method):
    support = SupportSet.of([one("Oslo", (0, 1, "city")), one("Ada", (0, 1, "person"))])
    tag_and_learn(method, Episode(support, (one("Rome saw Ada", (0, 1, "city"), (2, 3, "person")), one("x y"))))


def test_a_support_set_of_one_label_works(method):
    support = SupportSet.of([one("we saw Oslo today", (2, 3, "city"))])
    tag_and_learn(method, Episode(support, (one("Rome again", (0, 1, "city")),)))


@pytest.mark.parametrize(
    "sentence",
    [
        one("Oslo", (0, 1, "city")),
        one("Oslo again", (0, 1, "city")),
        one("New York", (0, 2, "city")),
        one("Oslo Rome", (0, 1, "city"), (1, 2, "city")),
        one("we saw New York", (0, 4, "city"), (2, 4, "city")),
    ],
    ids=["one word", "none inside", "only inside", "only across", "nested"],
)
def test_a_kind_of_span_outside_entities_may_be_missing(method, sentence):
    tag_and_learn(method, Episode(SupportSet.of([sentence]), (one("see Rome", (1, 2, "city")), one("no"))))


def test_a_support_entity_longer_than_any_candidate_works(method):
    long = one("a b c d e f g h i j k l", (1, 11, "title"))
    mixed = SupportSet.of([long, one("see Oslo", (1, 2, "city"))])
    query = (one("see Rome now", (1, 2, "city")), long)
    tag_and_learn(method, Episode(mixed, query))
    tag_and_learn(method, Episode(SupportSet.of([long]), (long,)))


def test_words_that_yield_no_piece_work_in_support_and_query(method):
    support = SupportSet.of([Sentence(("\x00", "Oslo", "\u200b"), (Span(0, 2, "city"),)), one("\x01 no")])
    tag_and_learn(method, Episode(support, (Sentence(("\u200b",)), Sentence(("Rome", "\x00"), (Span(0, 1, "city"),)))))


def test_a_sentence_longer_than_the_encoder_reads_at_once_is_not_cut(method):
    words = (["nobody", "knows", "why"] * 300)[:899]
    sentences = [Sentence((*words, "Oslo")), Sentence((*words, "soup"))]
    tagger = method.fit(EPISODE.support)
    assert_fits(tagger(sentences), sentences, EPISODE.support)
    if isinstance(method, MetricMethod):
        scored = dict(tagger.scores(sentences))
        first, second = scored[0], scored[1]
        if isinstance(first, SpanScores):
            assert set(range(900)) == {start for start, _ in first.bounds.tolist()}
            assert first.bounds.max() == 900
            last = np.flatnonzero((first.bounds == (899, 900)).all(axis=1))
        else:
            assert len(first.scores) == 900
            last = np.array([899])
        assert np.abs(first.scores[last] - second.scores[last]).max() > 1e-3


def test_a_long_sentence_in_the_support_works(method):
    words = (*["nobody", "knows", "why"] * 40, "Oslo")
    support = SupportSet.of([Sentence(words, (Span(120, 121, "city"),))])
    tag_and_learn(method, Episode(support, (one("see Rome", (1, 2, "city")),)))


def test_a_sentence_may_stand_twice_in_the_support(method):
    doubled = SupportSet(EPISODE.support.labels, EPISODE.support.sentences * 2)
    tag_and_learn(method, Episode(doubled, EPISODE.query))


def test_every_method_says_its_name_and_settings():
    for name, kind in METHODS.items():
        assert kind.name == name
        assert dataclasses.is_dataclass(kind.Settings)
        assert kind.__doc__
