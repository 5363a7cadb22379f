from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from spanshot.errors import ConfigError, DataError
from spanshot.research.corpora.episode_files import EpisodeFiles, write_episodes
from spanshot.research.corpora.fewnerd import FewNerd
from spanshot.research.corpora.many import ManyCorpora
from spanshot.research.corpora.mixture import Mixture
from spanshot.research.corpora.registry import SOURCES
from spanshot.research.corpora.snips import Snips
from spanshot.research.corpora.source import distinct_sentences
from spanshot.tags import tags_from_spans
from spanshot.types import Episode, Sentence, Span, SupportSet
from tiny import NAMES, toy_episodes


def draws(source, count: int = 20, seed: int = 0) -> list[Episode]:
    draw = source.training()
    rng = random.Random(seed)
    return [draw(rng) for _ in range(count)]


def write_snips(folder, shots: int, fold: int, split: str, episodes: list[Episode]):
    """A file in the layout of the release."""
    if shots == 1:
        path = folder / "xval_snips" / f"snips_{split}_{fold}.json"
    else:
        path = folder / f"xval_snips_shot_{shots}" / f"snips-{split}-{fold}-shot-{shots}.json"
    path.parent.mkdir(parents=True, exist_ok=True)

    def part(sentences):
        return {
            "seq_ins": [list(s.words) for s in sentences],
            "seq_outs": [tags_from_spans(len(s), s.spans, "bio") for s in sentences],
        }

    domains: dict[str, list[object]] = {}
    for episode in episodes:
        record = {"support": part(episode.support.sentences), "query": part(episode.query)}
        domains.setdefault(episode.domain, []).append(record)
    path.write_text(json.dumps(domains), encoding="utf-8")
    return path


@pytest.fixture
def snips(tmp_path):
    """A folder with all three splits of fold 3, 1-shot and 5-shot, and what is in it."""
    held = {}
    for number, (shots, split) in enumerate((k, s) for k in (1, 5) for s in ("train", "valid", "test")):
        held[shots, split] = [
            *toy_episodes(3, domain="PlayMusic", seed=2 * number),
            *toy_episodes(3, domain="GetWeather", labels=("dish", "day"), seed=2 * number + 1),
        ]
        write_snips(tmp_path, shots, 3, split, held[shots, split])
    return tmp_path, held


def values(episodes: list[Episode]) -> list[tuple[object, ...]]:
    """Episodes without the order of their labels, which SNIPS files don't keep."""
    return [(e.support.sentences, sorted(e.support.labels), e.query, e.domain) for e in episodes]


@pytest.mark.parametrize("shots", [1, 5])
@pytest.mark.parametrize(("split", "file"), [("train", "train"), ("dev", "valid"), ("test", "test")])
def test_snips_opens_the_file_of_its_fold_shots_and_split(snips, shots, split, file):
    folder, held = snips
    assert values(Snips(str(folder), fold=3, shots=shots).episodes(split)) == values(held[shots, file])


def test_snips_trains_on_the_released_episodes(snips):
    folder, held = snips
    known = values(held[1, "train"])
    drawn = values(draws(Snips(str(folder), fold=3), 60))
    assert all(one in known for one in drawn)
    assert all(one in drawn for one in known)


def test_snips_redraws_episodes_of_one_domain_from_the_released_sentences(snips):
    folder, held = snips
    source = Snips(str(folder), fold=3, redraw=True)
    known = {domain: set() for domain in ("PlayMusic", "GetWeather")}
    for episode in held[1, "train"]:
        known[episode.domain] |= {s.words for s in (*episode.support.sentences, *episode.query)}
    drawn = draws(source)
    assert {episode.domain for episode in drawn} == set(known)
    for episode in drawn:
        support = {s.words for s in episode.support.sentences}
        query = {s.words for s in episode.query}
        assert support | query <= known[episode.domain]
        assert not support & query
    assert any(one not in values(held[1, "train"]) for one in values(drawn))


def test_snips_trains_on_some_of_the_queries_if_asked_to(snips):
    folder, _ = snips
    whole = {sentence.words for episode in draws(Snips(str(folder), fold=3), 60) for sentence in episode.query}
    for episode in draws(Snips(str(folder), fold=3, queries=1)):
        assert len(episode.query) == 1
        assert episode.query[0].words in whole


def test_snips_may_leave_out_labels_but_no_sentence_and_at_most_half_of_them(snips):
    folder, _ = snips
    pairs = zip(
        draws(Snips(str(folder), fold=3), 1), draws(Snips(str(folder), fold=3, fewer_labels=1.0), 1), strict=True
    )
    for whole, fewer in pairs:
        kept = set(fewer.support.labels)
        assert kept <= set(whole.support.labels)
        assert 2 * len(kept) >= len(whole.support.labels)
        for before, after in zip(
            (*whole.support.sentences, *whole.query), (*fewer.support.sentences, *fewer.query), strict=True
        ):
            assert after.words == before.words
            assert after.spans == tuple(span for span in before.spans if span.label in kept)
    sizes = {len(episode.support.labels) for episode in draws(Snips(str(folder), fold=3, fewer_labels=1.0), 40)}
    assert len(sizes) > 1


@pytest.mark.parametrize(("wrong", "message"), [({"queries": -1}, "queries"), ({"fewer_labels": 1.5}, "fewer_labels")])
def test_snips_refuses_impossible_thinning(wrong, message):
    with pytest.raises(ConfigError, match=message):
        Snips("folder", **wrong)


def test_snips_names_every_place_it_looked_in(tmp_path):
    with pytest.raises(DataError) as error:
        Snips(str(tmp_path), fold=2, shots=5).episodes("dev")
    message = str(error.value)
    assert "fold 2, 5-shot, valid" in message
    assert str(tmp_path / "xval_snips_shot_5" / "snips-valid-2-shot-5.json") in message
    assert str(tmp_path / "snips-valid-2-shot-5.json") in message


def test_snips_refuses_an_eighth_fold(tmp_path):
    with pytest.raises(ConfigError, match="folds 1 to 7; found 8"):
        Snips(str(tmp_path), fold=8).training()


@pytest.fixture
def fewnerd(tmp_path):
    """A folder with train.txt of one-entity sentences, and 2-way 1-shot episodes."""
    lines = []
    for label, names in NAMES.items():
        for name in names:
            lines += ["see\tO", *(f"{word}\t{label}" for word in name.split()), ".\tO", ""]
    (tmp_path / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "episodes").mkdir()
    for seed, split in enumerate(("dev", "test")):
        write_episodes(tmp_path / "episodes" / f"{split}_2_1.jsonl", toy_episodes(3, seed=seed))
    return tmp_path


def test_fewnerd_reads_its_training_text(fewnerd):
    sentences = FewNerd(str(fewnerd)).sentences()
    assert len(sentences) == sum(map(len, NAMES.values()))
    assert sentences[0] == Sentence(("see", "Oslo", "."), (Span(1, 2, "city"),))


def test_fewnerd_draws_training_episodes_of_the_named_shape(fewnerd):
    for episode in draws(FewNerd(str(fewnerd), ways=3, shots=2, query_shots=1)):
        assert len(episode.support.labels) == 3
        for label in episode.support.labels:
            assert 2 <= sum(s.label == label for x in episode.support.sentences for s in x.spans) <= 4
            assert 1 <= sum(s.label == label for x in episode.query for s in x.spans) <= 2


@pytest.mark.parametrize(("split", "seed"), [("dev", 0), ("test", 1)])
def test_fewnerd_opens_the_episodes_of_its_shape_and_split(fewnerd, split, seed):
    assert FewNerd(str(fewnerd), ways=2, shots=1).episodes(split) == toy_episodes(3, seed=seed)


def test_fewnerd_finds_episodes_beside_the_training_text_too(fewnerd):
    (fewnerd / "episodes" / "dev_2_1.jsonl").rename(fewnerd / "dev_2_1.jsonl")
    assert FewNerd(str(fewnerd), ways=2, shots=1).episodes("dev") == toy_episodes(3, seed=0)


def test_fewnerd_names_every_place_it_looked_in(fewnerd):
    with pytest.raises(DataError) as error:
        FewNerd(str(fewnerd), ways=5, shots=1).episodes("test")
    message = str(error.value)
    assert "5-way 1-shot test" in message
    assert str(fewnerd / "episodes" / "test_5_1.jsonl") in message
    assert str(fewnerd / "test_5_1.jsonl") in message


def test_fewnerd_names_the_missing_training_text(tmp_path):
    with pytest.raises(DataError) as error:
        FewNerd(str(tmp_path)).training()
    assert str(tmp_path / "train.txt") in str(error.value)


@pytest.fixture
def own_files(tmp_path):
    paths = {}
    for seed, split in enumerate(("train", "dev", "test")):
        paths[split] = str(tmp_path / f"{split}.jsonl")
        write_episodes(paths[split], toy_episodes(3, seed=seed))
    return paths


def test_own_episode_files_are_opened_by_split(own_files):
    source = EpisodeFiles(**own_files)
    for seed, split in enumerate(("train", "dev", "test")):
        assert source.episodes(split) == toy_episodes(3, seed=seed)


def test_own_training_episodes_are_all_drawn(own_files):
    assert set(draws(EpisodeFiles(**own_files), 60)) == set(toy_episodes(3, seed=0))


def test_a_split_without_a_file_is_named(own_files):
    with pytest.raises(ConfigError, match=r"data\.test is not set"):
        EpisodeFiles(own_files["train"], own_files["dev"]).episodes("test")


def test_a_missing_episode_file_is_named(tmp_path):
    with pytest.raises(DataError) as error:
        EpisodeFiles(str(tmp_path / "gone.jsonl"), "").training()
    assert str(tmp_path / "gone.jsonl") in str(error.value)


def test_draws_follow_from_the_generator_alone(snips, fewnerd, own_files):
    folder, _ = snips
    for source in (
        Snips(str(folder), fold=3),
        Snips(str(folder), fold=3, redraw=True),
        FewNerd(str(fewnerd), ways=2),
        EpisodeFiles(**own_files),
    ):
        assert draws(source, seed=4) == draws(source, seed=4)


def test_distinct_sentences_are_those_of_support_and_query_each_once_in_order():
    first, second, third = (Sentence((word,), (Span(0, 1, "x"),)) for word in "abc")
    episodes = [
        Episode(SupportSet.of([second]), (first, second)),
        Episode(SupportSet.of([first]), (third,)),
    ]
    assert distinct_sentences(episodes) == [second, first, third]


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_refuses_an_unknown_split_with_a_hint(kind):
    source = {
        "snips": lambda: Snips("nowhere"),
        "fewnerd": lambda: FewNerd("nowhere"),
        "episodes": lambda: EpisodeFiles("nowhere", "nowhere"),
        "mixture": lambda: Mixture("nowhere", ("a=io:b",)),
        "many": lambda: ManyCorpora("nowhere"),
    }[kind]()
    with pytest.raises(ConfigError, match="did you mean 'test'"):
        source.episodes("tests")


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_says_what_it_is_reported_by(kind):
    assert SOURCES[kind].metric in {"mean_f1", "micro_f1"}


def test_naming_a_corpus_imports_no_other():
    code = "import sys; from spanshot.research.corpora.registry import SOURCES; 'snips' in SOURCES, len(SOURCES); "
    code += "assert 'spanshot.research.corpora.snips' not in sys.modules; SOURCES['snips']; "
    code += "assert 'spanshot.research.corpora.snips' in sys.modules; "
    code += "assert not [n for n in ('mixture', 'fewnerd') if 'spanshot.research.corpora.' + n in sys.modules]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_is_read_once_until_it_changes(own_files, monkeypatch):
    read = Counter()
    unwatched = Path.open

    def watched(path, mode="r", **options):
        read[path.name] += mode == "rb"
        return unwatched(path, mode, **options)

    monkeypatch.setattr(Path, "open", watched)
    source = EpisodeFiles(**own_files)
    source.training()
    source.sentences()
    source.episodes("train").clear()  # a list of the caller's own
    assert source.episodes("train") == toy_episodes(3, seed=0)
    assert read == {"train.jsonl": 1}
    write_episodes(own_files["train"], toy_episodes(2, seed=9))
    assert source.episodes("train") == toy_episodes(2, seed=9)
    assert read == {"train.jsonl": 2}
