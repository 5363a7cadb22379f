"""Evaluating tells learning from tagging. How long either takes is for benchmarks, not for tests."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest

from spanshot.research.experiments.evaluate import evaluate, evaluate_variants
from spanshot.research.methods.esd import Esd, EsdSettings
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.training import pace
from spanshot.research.training.pace import Pace, Stopwatch
from tiny import toy_episodes, write_tiny_encoder


@pytest.fixture
def method(tmp_path):
    encoder = load_pretrained(str(write_tiny_encoder(tmp_path / "encoder")))
    return Esd(encoder, EsdSettings(size=8, longest=3))


def same(tagger):
    return tagger


def test_without_anything_done_no_time_is_told():
    assert Pace().to_dict() == {"supports": 0, "sentences": 0, "seconds_to_learn": 0.0, "seconds_per_sentence": 0.0}


def test_learning_and_tagging_are_timed_apart_and_counted(method):
    episodes = toy_episodes(2, query=3)
    for timed in (
        lambda stopwatch: evaluate(method, episodes, stopwatch=stopwatch),
        lambda stopwatch: evaluate_variants(method, episodes, {"one": same, "two": same}, stopwatch=stopwatch),
    ):
        stopwatch = Stopwatch()
        timed(stopwatch)
        found = stopwatch.pace
        assert (found.supports, found.sentences) == (2, 6)
        assert found.seconds_to_learn > 0
        assert found.seconds_per_sentence > 0


def test_of_several_ways_to_decode_only_the_first_counts_as_tagging(method, monkeypatch):
    monkeypatch.setattr(pace, "time", SimpleNamespace(perf_counter=count().__next__))  # each block takes a second
    tagging = []
    for names in (("one",), ("one", "two"), ("one", "two", "three")):
        stopwatch = Stopwatch()
        evaluate_variants(method, toy_episodes(1), dict.fromkeys(names, same), stopwatch=stopwatch)
        tagging.append(stopwatch.pace.tagging)
    assert tagging == [2, 2, 2]  # to score, and to decode once
