"""The linear method: names, rejected spans, labels without examples, fine-tuning on folds, encoding without padding."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from spanshot.evaluation.counts import Counts
from spanshot.research.checkpoint import new_method
from spanshot.research.learning import fold_finetuning
from spanshot.research.learning.fold_finetuning import FoldFinetuning, finetuned_on_folds
from spanshot.research.training.settings import RunSettings
from spanshot.types import Sentence, Span, SupportSet
from tiny import toy_episodes, write_tiny_encoder

FAST = FoldFinetuning(steps=2, folds=2, least_shots=1.0)
EPISODE = toy_episodes(1, labels=("city", "dish"), support=8, query=5, seed=2)[0]


@pytest.fixture(scope="module")
def method(tmp_path_factory):
    settings = RunSettings.of(
        {
            "method": {"name": "linear", "size": 16, "hidden": 16, "longest": 4},
            "data": {"kind": "episodes", "train": "none", "dev": "none"},
            "encoder": {"name": str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))},
        }
    )
    torch.manual_seed(0)
    return new_method(settings).eval()


def scores(method, support: SupportSet, sentences) -> torch.Tensor:
    found = dict(method.fit(support).scores(sentences))
    return torch.cat([torch.tensor(found[number].scores[:, 1:]) for number in range(len(sentences))])


# Scores


def test_a_label_without_examples_is_scored_by_its_name(method):
    alone = scores(method, SupportSet(("city", "dish"), ()), EPISODE.query)
    renamed = scores(method, SupportSet(("city", "dish"), (), {"dish": "soup"}), EPISODE.query)
    assert torch.equal(alone[:, 0], renamed[:, 0])
    assert not torch.equal(alone[:, 1], renamed[:, 1])


def test_a_rejected_span_lowers_its_score(method):
    shown = Sentence(("see", "Rome", "and", "soup"), (Span(1, 2, "city"),))
    before = scores(method, SupportSet.of([shown]), [shown.without_spans()])
    rejecting = replace(shown, rejected=(Span(3, 4, "city"),))
    after = scores(method, SupportSet.of([rejecting]), [shown.without_spans()])
    rejected = [(s, e) for s in range(4) for e in range(s + 1, 5)].index((3, 4))
    assert after[rejected, 0] < before[rejected, 0]


def test_a_sentence_that_was_not_annotated_with_a_label_does_not_teach_it(method):
    labels = ("city", "dish")
    first = Sentence(("Rome", "has", "soup"), (Span(0, 1, "city"), Span(2, 3, "dish")))
    later = Sentence(("Oslo", "has", "bread"), (Span(0, 1, "city"),))
    alone = scores(method, SupportSet(labels, (first,)), EPISODE.query)
    partly = scores(method, SupportSet(labels, (first, replace(later, annotated=("city",)))), EPISODE.query)
    fully = scores(method, SupportSet(labels, (first, later)), EPISODE.query)
    assert torch.allclose(alone[:, 1], partly[:, 1], atol=1e-4)
    assert not torch.allclose(alone[:, 1], fully[:, 1], atol=1e-2)


def test_nested_entities_and_two_labels_of_one_span_may_be_found(method):
    tuned = copy.deepcopy(method)
    tuned.o_bias.fill_(50.0)  # everything is found
    from spanshot.types import LearnOptions

    found = tuned.fit(EPISODE.support, LearnOptions(nested=True))([Sentence(("New", "York"))])[0]
    assert len({(one.span.start, one.span.end) for one in found}) < len(found)


# Encoding


def test_sentences_and_names_are_encoded_without_padding_as_with_it(method):
    sentences = [*EPISODE.query, Sentence(("word",) * 90), Sentence(("x",))]  # the long one is read in windows
    names = [Sentence(("city",)), Sentence(("apple", "pie", "today"))]
    with torch.no_grad():
        words, means = method.encoder.without_padding(sentences, names)
        padded = method.encoder(sentences)
    assert words.lengths == padded.lengths
    assert torch.allclose(words.first, padded.first, atol=1e-5)
    assert torch.allclose(words.last, padded.last, atol=1e-5)
    with torch.no_grad():
        assert torch.allclose(means, method.encoder.means(names), atol=1e-5)


# Fine-tuning


def test_fine_tuning_changes_a_copy_and_gives_the_same_copy_in_any_order(method):
    before = copy.deepcopy(method.state_dict())
    turned = SupportSet(EPISODE.support.labels, EPISODE.support.sentences[::-1])
    settings = replace(FAST, head_rate=1e-3)
    tuned, other = (finetuned_on_folds(method, support, settings) for support in (EPISODE.support, turned))
    assert tuned.equals(other)
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
    assert not any(module.training for module in tuned.modules())


@pytest.mark.parametrize(("kept", "f1"), [(True, 2), (True, 1), (False, 0)])
def test_a_fine_tuned_copy_is_kept_only_if_it_is_not_worse_on_held_out_folds(method, monkeypatch, kept, f1):
    """Counts stand for the outcome: the method as it is finds one span of two per fold, the copy ``f1`` of two."""
    monkeypatch.setattr(
        fold_finetuning,
        "_count",
        lambda scored, *_: Counts(tp=1, fn=1) if scored is method else Counts(tp=f1, fn=2 - f1),
    )
    tuned = finetuned_on_folds(method, EPISODE.support, FAST)
    assert (tuned is not method) == kept


def test_fine_tuning_is_skipped_with_too_few_examples_and_reports_its_steps(method):
    assert method.finetuned(SupportSet.of([Sentence(("Oslo",), (Span(0, 1, "city"),))])) is None
    steps: list[tuple[int, int]] = []
    finetuned_on_folds(method, EPISODE.support, FAST, lambda done, of: steps.append((done, of)))
    assert steps[0] == (1, 6)
    assert len(steps) in {4, 6}
