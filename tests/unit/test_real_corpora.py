"""The readers on the real corpora, where a machine has them (a folder shared/data beside the repository)."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from spanshot.formats.columns import read_columns
from spanshot.research.corpora.episode_files import read_episodes, write_episodes
from spanshot.research.corpora.fewnerd import read_fewnerd_episodes, read_fewnerd_text
from spanshot.research.corpora.genia import read_genia
from spanshot.research.corpora.sampling import FewNerdSampler
from spanshot.research.corpora.snips import read_snips_episodes, snips_file

BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "data"
DATA = Path(os.environ.get("SPANSHOT_DATA", BESIDE))


def corpus(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no corpus {name}; set SPANSHOT_DATA to a folder that has it")
    return path


def labels_of(sentences):
    return {span.label for sentence in sentences for span in sentence.spans}


@pytest.mark.parametrize(
    ("name", "sentences", "types"),
    [
        ("inter/train.txt", 34_377, 36),
        ("inter/dev.txt", 18_817, 13),
        ("inter/test.txt", 14_007, 17),
        ("intra_like/dev.txt", 1_885, None),
        ("intra_like/test.txt", 4_361, None),
    ],
)
def test_fewnerd_has_its_sentences_and_types(name, sentences, types):
    found = read_fewnerd_text(corpus(f"fewnerd/{name}"))
    assert len(found) == sentences
    assert types is None or len(labels_of(found)) == types


def test_the_scheme_of_fewnerd_is_guessed_as_io():
    path = corpus("fewnerd/intra_like/dev.txt")
    assert read_columns(path) == read_fewnerd_text(path)


def test_genia_has_its_sentences_and_nested_entities():
    parts = [read_genia(corpus(f"genia/{part}.jsonl")) for part in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [15_023, 1_669, 1_854]
    nested = sum(
        any(span != other and span.overlaps(other) for other in sentence.spans)
        for part in parts
        for sentence in part
        for span in sentence.spans
    )
    assert nested == 10_317
    assert labels_of(parts[0]) == {"DNA", "RNA", "protein", "cell_line", "cell_type"}


@pytest.mark.parametrize(
    ("folder", "pattern", "sentences", "types"),
    [("wnut17", "*", 5_690, 6), ("btc", "*.conll", 9_339, 3), ("wikigold", "*", 1_696, 4)],
)
def test_flat_corpora_have_their_sentences(folder, pattern, sentences, types):
    found = [s for path in sorted(corpus(folder).glob(pattern)) for s in read_columns(path)]
    assert len(found) == sentences
    assert len(labels_of(found)) == types


def test_movie_questions_are_read_with_the_label_first():
    for part, sentences in (("train", 7_816), ("test", 1_953)):
        path = corpus(f"mit_movie_trivia/trivia10k13{part}.bio")
        found = read_columns(path, label_column="first")
        assert len(found) == sentences
        assert len(labels_of(found)) == 12


@pytest.mark.parametrize(("shots", "queries"), [(1, 20), (5, 10)])
def test_snips_has_a_hundred_episodes_of_each_test_domain(shots, queries):
    domains = "GetWeather PlayMusic AddToPlaylist RateBook SearchScreeningEvent BookRestaurant SearchCreativeWork"
    for fold, domain in enumerate(domains.split(), start=1):
        episodes = read_snips_episodes(snips_file(corpus("snips"), fold, shots, "test"))
        assert [episode.domain for episode in episodes] == [domain] * 100
        assert all(len(episode.query) == queries for episode in episodes)


@pytest.mark.parametrize(("n", "k", "episodes"), [(5, 1, 500), (10, 5, 250)])
def test_fixed_episodes_keep_to_the_rule_that_the_sampler_has(tmp_path, n, k, episodes):
    path = corpus(f"fewnerd/inter/episodes/test_{n}_{k}.jsonl")
    found = read_fewnerd_episodes(path)
    assert len(found) == episodes
    for episode in found:
        for sentences in (episode.support.sentences, episode.query):
            counts = Counter(span.label for sentence in sentences for span in sentence.spans)
            assert len(counts) == n
            assert all(k <= count <= 2 * k for count in counts.values())
    write_episodes(tmp_path / "again.jsonl", found)
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()
    assert read_episodes(path) == found


def test_every_fewnerd_type_can_be_drawn():
    sampler = FewNerdSampler(read_fewnerd_text(corpus("fewnerd/inter/test.txt")), 5, 5)
    assert sampler.left_out == {}
    rng = random.Random(0)
    drawn = {label for _ in range(50) for label in sampler.sample(rng).support.labels}
    assert len(drawn) == 17
