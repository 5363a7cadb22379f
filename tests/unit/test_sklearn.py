"""The scikit-learn estimator under scikit-learn's own tools."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import spanshot.model
from spanshot.errors import InputError
from spanshot.integrations.sklearn import SpanTagger, bounds
from spanshot.types import Entity, LearnOptions, SupportSet
from stub_tagger import NameTagger

TEXTS = ["Ada saw Oslo", "Bo saw Rome", "Ada left Rome", "Oslo is far", "nobody came", "Bo left Oslo"]
SPANS = [[(e.start, e.end, e.label) for e in NameTagger()(text)] for text in TEXTS]


@pytest.fixture(autouse=True)
def learned(monkeypatch):
    """Learn with a tagger that finds known names, above a threshold."""
    calls = []

    def learn(examples, *, nested, threshold, finetune, model):
        calls.append((examples, threshold))
        support = SupportSet.of(examples)
        return _Thresholded(support=support, options=LearnOptions(nested, threshold, finetune))

    monkeypatch.setattr(spanshot.model, "learn", learn)
    return calls


class _Thresholded(NameTagger):
    def pipe(self, texts, batch_size=32):
        for entities in super().pipe(texts, batch_size):
            yield [entity for entity in entities if entity.score >= (self.options.threshold or 0)]


def test_fit_learns_the_spans_and_predict_finds_such_spans(learned):
    tagger = SpanTagger().fit(TEXTS[:2], SPANS[:2])
    assert tagger.labels_ == ("city", "person")
    [(examples, _)] = learned
    assert [sentence.text for sentence in examples] == TEXTS[:2]
    [[entity]] = tagger.predict(["to Rome"])
    assert (entity.text, entity.label) == ("Rome", "city")


def test_the_score_is_micro_f1_of_exact_spans():
    tagger = SpanTagger().fit(TEXTS, SPANS)
    assert tagger.score(TEXTS, SPANS) == 1.0
    assert tagger.score(["Ada saw Oslo"], [[(0, 3, "person"), (8, 11, "city")]]) == 0.5
    assert tagger.score(["nothing"], [[]]) == 1.0


def test_cross_validation_and_clones_work():
    scores = cross_val_score(SpanTagger(), TEXTS, SPANS, cv=KFold(3, shuffle=True, random_state=0))
    assert scores.tolist() == [1.0, 1.0, 1.0]
    tagger = SpanTagger(threshold=0.25, nested=True)
    assert clone(tagger).get_params() == tagger.get_params()


def test_a_search_finds_the_threshold_that_scores_best():
    search = GridSearchCV(SpanTagger(), {"threshold": [0.05, 0.9]}, cv=KFold(2))
    search.fit(TEXTS, SPANS)
    assert search.best_params_ == {"threshold": 0.05}
    assert search.best_estimator_.tagger_.options.threshold == 0.05


def test_a_tagger_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        SpanTagger().predict(["a"])


def test_spans_come_in_several_forms():
    assert bounds(Entity("Oslo", "city", 0, 4)) == bounds((0, 4, "city")) == bounds([0, 4, "city"])
    with pytest.raises(InputError, match="a span must be"):
        bounds("Oslo")


@pytest.mark.parametrize(
    ("spans", "message"), [([[(0, 9, "x")]], "outside the text"), ([[], []], "1 texts and 2 lists of spans")]
)
def test_spans_that_do_not_fit_are_errors(spans, message):
    with pytest.raises(InputError, match=message):
        SpanTagger().fit(["Oslo"], spans)
