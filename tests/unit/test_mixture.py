"""Episodes from several corpora, on small files in the corpora's own layouts."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from spanshot.errors import ConfigError, DataError
from spanshot.research.corpora.episode_files import write_episodes
from spanshot.research.corpora.mixture import Mixture
from spanshot.research.corpora.perturbation import perturbed, without_punctuation
from spanshot.tags import tags_from_spans
from spanshot.types import Episode, Sentence, Span, SupportSet
from tiny import toy_episodes, toy_sentence

LABELS = ("city", "person", "dish", "day")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Few-NERD (IO columns, with episodes), GENIA (JSON lines) and WNUT-17 (BIO columns)."""
    root = tmp_path_factory.mktemp("corpora")
    rng = random.Random(0)

    def columns(sentences, scheme):
        tagged = [(s.words, tags_from_spans(len(s), s.spans, scheme)) for s in sentences]
        return "\n".join("".join(f"{w}\t{t}\n" for w, t in zip(*own, strict=True)) for own in tagged)

    texts = {name: [toy_sentence(rng, LABELS) for _ in range(300)] for name in ("fewnerd", "genia", "wnut17")}
    inter = root / "fewnerd" / "inter"
    (inter / "episodes").mkdir(parents=True)
    (inter / "train.txt").write_text(columns(texts["fewnerd"], "io"), encoding="utf-8")
    for split in ("dev", "test"):
        for size in ("5_1", "5_5"):
            write_episodes(inter / "episodes" / f"{split}_{size}.jsonl", toy_episodes(2, seed=len(size + split)))
    (root / "wnut17").mkdir()
    (root / "wnut17" / "wnut17train.conll").write_text(columns(texts["wnut17"], "bio"), encoding="utf-8")
    (root / "genia").mkdir()
    lines = [
        json.dumps(
            {
                "id": str(number),
                "tokens": list(s.words),
                "entities": [{"start": x.start, "end": x.end, "type": x.label} for x in s.spans],
            }
        )
        for number, s in enumerate(texts["genia"])
    ]
    (root / "genia" / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return root


PARTS = ("fewnerd=io:fewnerd/inter/train.txt", "genia=genia:genia/train.jsonl", "wnut17=bio:wnut17/*.conll")
EPISODES = "fewnerd/inter/episodes"


def mixture(folder, **changes) -> Mixture:
    files = {split: tuple(f"{EPISODES}/{split}_{size}.jsonl" for size in ("5_1", "5_5")) for split in ("dev", "test")}
    return Mixture(str(folder), **{"parts": PARTS, "most_spans": 6, **files, **changes})


def drawn(source: Mixture, count: int = 120) -> list[Episode]:
    draw, rng = source.training(), random.Random(1)
    return [draw(rng) for _ in range(count)]


def test_every_part_is_drawn_from_as_often_as_its_weight_says(folder):
    counts = Counter(episode.domain for episode in drawn(mixture(folder, weights=(4.0, 1.0, 1.0)), 300))
    assert set(counts) == {"fewnerd", "genia", "wnut17"}
    assert 150 < counts["fewnerd"] < 250


def test_episodes_are_of_all_sizes_within_their_bounds(folder):
    episodes = drawn(mixture(folder, shots=(1, 3), fewer_labels=0.0, no_punctuation=0.0))
    ways = {len(episode.support.labels) for episode in episodes}
    assert ways == {1, 2, 3, 4}
    least = set()
    for episode in episodes:
        spans = Counter(span.label for s in episode.support.sentences for span in s.spans)
        least.add(min(spans.values()) >= 3)
        if min(spans.values()) >= 3 and len(spans) > 2:
            assert max(spans.values()) <= 6
    assert least == {True, False}


def test_episodes_have_the_least_number_of_ways_where_the_most_spans_allow_it(folder):
    episodes = drawn(mixture(folder, shots=(1, 3), least_ways=3, fewer_labels=0.0))
    sizes = {len(episode.support.labels) for episode in episodes}
    assert sizes == {2, 3, 4}  # at most six spans: two labels of three examples, or up to four of one


@pytest.mark.parametrize("ways", [{"least_ways": 0}, {"least_ways": 5, "most_ways": 4}])
def test_impossible_numbers_of_ways_are_refused(folder, ways):
    with pytest.raises(ConfigError, match="least_ways"):
        mixture(folder, **ways)


def test_the_same_random_state_draws_the_same_episode(folder):
    draw = mixture(folder).training()
    assert draw(random.Random(5)) == draw(random.Random(5))


def test_labels_left_unmarked_leave_their_words_in_place(folder):
    whole, fewer = (drawn(mixture(folder, fewer_labels=p, no_punctuation=0.0), 250) for p in (0.0, 1.0))
    assert max(len(e.support.labels) for e in fewer) == 3
    assert any(not s.spans for e in fewer for s in (*e.support.sentences, *e.query))
    assert all(s.spans for e in whole for s in (*e.support.sentences, *e.query))


def test_punctuation_is_left_out_of_whole_episodes(folder):
    for chance in (0.0, 1.0):
        episodes = drawn(mixture(folder, no_punctuation=chance), 60)
        words = {word for e in episodes for s in (*e.support.sentences, *e.query) for word in s.words}
        assert bool(words & {".", "!"}) == (chance == 0.0)


def test_dev_and_test_episodes_are_those_of_all_the_files(folder):
    assert len(mixture(folder).episodes("dev")) == 4
    assert len(mixture(folder, test=(f"{EPISODES}/test_5_5.jsonl",)).episodes("test")) == 2
    with pytest.raises(ConfigError, match=r"data\.test is not set"):
        mixture(folder, test=()).episodes("test")


def test_labels_of_the_source_text_go_by_their_corpus(folder):
    labels = {span.label for s in mixture(folder).sentences() for span in s.spans}
    assert labels == {f"{part}/{label}" for part in ("fewnerd", "genia", "wnut17") for label in LABELS}


def test_a_missing_corpus_is_named(folder):
    with pytest.raises((DataError, OSError), match="wikigold"):
        Mixture(str(folder), parts=("wikigold=io:wikigold/text.txt",)).training()
    with pytest.raises(DataError, match="wikigold"):
        Mixture(str(folder), parts=("wikigold=io:wikigold/*.txt",)).training()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": ("genia",)}, "NAME=FORMAT:PATH"),
        ({"parts": ("genia=genja:train.jsonl",)}, "did you mean 'genia'"),
        ({"parts": ()}, "name at least one corpus"),
        ({"weights": (1.0,)}, "one number for each part"),
        ({"weights": (1.0, 0.0, 1.0)}, "above 0"),
        ({"shots": (0,)}, "at least 1"),
        ({"fewer_labels": 2.0}, "a probability"),
    ],
)
def test_settings_that_make_no_sense_are_refused(folder, changes, message):
    with pytest.raises(ConfigError, match=message):
        mixture(folder, **changes)


# Perturbation


def test_spans_keep_their_words_when_punctuation_goes():
    sentence = Sentence(("(", "New", "-", "York", ")", "!"), (Span(1, 4, "city"), Span(5, 6, "mark")))
    assert without_punctuation(sentence) == Sentence(("New", "York"), (Span(0, 2, "city"),))


def test_a_sentence_of_punctuation_only_is_left_as_it_is():
    sentence = Sentence(("!", "?"), (Span(0, 1, "mark"),))
    assert without_punctuation(sentence) == sentence


def test_a_label_that_loses_all_its_examples_is_left_out_of_the_query_too():
    support = SupportSet.of([Sentence(("Oslo", "!"), (Span(0, 1, "city"), Span(1, 2, "mark")))])
    episode = Episode(support, (Sentence(("Rome", "x"), (Span(0, 1, "city"), Span(1, 2, "mark"))),))
    changed = perturbed(episode, without_punctuation)
    assert changed.support.labels == ("city",)
    assert changed.query == (Sentence(("Rome", "x"), (Span(0, 1, "city"),)),)
