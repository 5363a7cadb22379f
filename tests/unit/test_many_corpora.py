"""Many corpora as one source: readers, pools, label names, training that resumes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from spanshot.engine.pieces import HIDDEN
from spanshot.errors import ConfigError, DataError
from spanshot.research.checkpoint import load, new_method, save
from spanshot.research.corpora.label_names import empty_names, paraphrase, plain_name
from spanshot.research.corpora.many import ManyCorpora
from spanshot.research.corpora.pool_sampler import PoolSampler, PoolSettings, estimated_pieces
from spanshot.research.corpora.variation import masked, without_signs
from spanshot.research.pools import Pool, PoolEpisode
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings
from spanshot.types import Sentence, Span
from tiny import CORPORA, toy_episodes, toy_sentence, write_corpora, write_tiny_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_corpora(tmp_path_factory.mktemp("many"))


def source(folder: Path, **settings: object) -> ManyCorpora:
    return ManyCorpora(folder=str(folder), held_out=("held",), **settings)  # type: ignore[arg-type]


def pools(folder: Path, count: int = 60, **settings: object) -> list[Pool]:
    draw = source(folder, **settings).training()
    return [draw(random.Random(number)) for number in range(count)]


# Reading


def test_every_file_is_a_corpus_and_held_out_ones_are_left_out(folder):
    assert set(source(folder).corpora()) == {"trips", "meals"}


def test_an_excluded_file_is_never_trained_on(folder):
    with pytest.raises(DataError, match="excluded"):
        source(folder, parts=("x=episodes:user_like/*.jsonl",)).corpora()


def test_sentences_of_episode_files_count_once(folder):
    corpora = source(folder, parts=("x=episodes:user_like/*.jsonl",), excluded=()).corpora()
    assert len(corpora["x"]) == len(set(corpora["x"]))


def test_dev_episodes_have_the_name_of_their_file_as_domain(folder):
    assert {episode.domain for episode in source(folder).episodes("dev")} == {f"{name}_1" for name in CORPORA}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": ("x",)}, "NAME=FORMAT:PATH"),
        ({"parts": ("x=geania:y",)}, "did you mean 'genia'"),
        ({"word_mask": 1.5}, "word_mask is a probability"),
        ({"pool_episodes": 0}, "pool_episodes must be at least 1"),
        ({"fewnerd_share": 1.0}, "fewnerd_share must be below 1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        ManyCorpora(**settings)


# Pools


def test_every_requested_label_has_an_example_and_no_query_sentence_is_in_the_support(folder):
    for pool in pools(folder):
        assert pool.episodes
        for part, full in zip(pool.episodes, pool.full_episodes(), strict=True):
            shown = {span.label for sentence in full.support.sentences for span in sentence.spans}
            assert shown == set(part.labels) <= set(pool.names)
            assert not set(part.support) & set(part.query)


def test_pools_are_bounded_by_estimated_pieces_and_use_several_episodes(folder):
    drawn = pools(folder, pool_pieces=100, large_pools=0.0)
    assert max(sum(map(estimated_pieces, pool.sentences)) for pool in drawn) <= 100 + 2 * 30
    assert {len(pool.episodes) for pool in drawn} >= {3}


def test_a_pool_depends_on_nothing_but_the_generator(folder):
    draw = source(folder).training()
    assert draw(random.Random(7)) == draw(random.Random(7)) != draw(random.Random(8))


def test_some_pools_ask_for_labels_that_no_sentence_has_or_hide_names_and_words(folder):
    drawn = pools(folder, count=200)
    assert any(not part.named for pool in drawn for part in pool.episodes)
    assert any(not pool.informative for pool in drawn)
    assert any(HIDDEN in sentence.words for pool in drawn for sentence in pool.sentences)


def test_corpora_are_drawn_by_the_square_root_of_their_size_with_a_share_for_fewnerd():
    rng = random.Random(1)
    corpora = {
        name: [toy_sentence(rng, ("city", "person")) for _ in range(size)]
        for name, size in (("small", 25), ("large", 400), ("fewnerd", 50))
    }
    draw = PoolSampler(corpora, PoolSettings(fewnerd_share=0.4))
    names = [draw(random.Random(number)).corpus for number in range(600)]
    shares = {name: names.count(name) / 600 for name in corpora}
    assert shares == pytest.approx({"fewnerd": 0.4, "small": 0.12, "large": 0.48}, abs=0.07)


def test_a_sentence_without_signs_keeps_its_spans_on_the_same_words():
    sentence = Sentence(("see", ",", "Oslo", ".", "now", "!"), (Span(2, 4, "city"),))
    bare = without_signs(sentence, final_only=False)
    assert bare.words == ("see", "Oslo", ".", "now")
    assert bare.spans == (Span(1, 3, "city"),)
    assert without_signs(sentence, final_only=True).words == ("see", ",", "Oslo", ".", "now")


def test_hidden_words_are_read_as_the_mask_piece(tmp_path):
    encoder = new_method(run_settings(tmp_path, write_tiny_encoder(tmp_path / "encoder"))).encoder
    hidden = masked(Sentence(("New", "York"), (Span(0, 2, "city"),)), 0.0, 1.0, random.Random(0))
    assert hidden.words == (HIDDEN, HIDDEN)
    assert encoder.pieces.rows([hidden.words])[0].ids[1:-1] == (encoder.pieces.mask_id,) * 2


def test_names_are_plain_words_and_empty_names_differ():
    assert plain_name("location-bodiesofwater") == "location body of water"
    rng = random.Random(0)
    assert {paraphrase("person", rng) for _ in range(100)} > {"person", "people"}
    assert len(set(empty_names(6, random.Random(2)))) > 1


# Training


def run_settings(folder: Path, encoder: Path, method: str = "linear", **train: object) -> RunSettings:
    own = {"linear": {"size": 16, "hidden": 16, "longest": 4}, "esd": {"size": 16, "longest": 4}}[method]
    return RunSettings.of(
        {
            "method": {"name": method, **own},
            "data": {"kind": "many", "folder": str(folder), "held_out": ["held"], "pool_pieces": 120},
            "encoder": {"name": str(encoder), "freeze_embeddings": True, "dropout": 0.0},
            "train": {
                "steps": 4,
                "batch": 2,
                "encoder_rate": 1e-3,
                "head_rate": 2e-3,
                "warmup": 0.25,
                "decay": 0.0,
                "average": 0.9,
                "evaluate_every": 4,
                "save_every": 1,
                "trim_every": 2,
                "keep": "last",
                **train,
            },
        }
    )


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.mark.parametrize("method", ["linear", "esd"])
def test_a_run_that_was_stopped_ends_with_the_same_weights(folder, encoder, tmp_path, method):
    settings = run_settings(folder, encoder, method)
    list(run_training(settings, tmp_path / "whole"))
    for _ in range(2):  # stopped after three steps: a generator that is closed runs no further
        run = run_training(settings, tmp_path / "stopped")
        for event in run:
            if getattr(event, "step", 0) == 3:
                break
        run.close()  # type: ignore[attr-defined]
    list(run_training(settings, tmp_path / "stopped"))
    whole, stopped = (load_file(tmp_path / name / "best" / "weights.safetensors") for name in ("whole", "stopped"))
    assert whole.keys() == stopped.keys()
    assert [name for name in whole if not torch.equal(whole[name], stopped[name])] == []


def test_the_averaged_weights_are_kept_and_training_continues_with_its_own(folder, encoder, tmp_path):
    plain, averaged = (run_settings(folder, encoder, average=factor) for factor in (0.0, 0.9))
    losses = []
    for name, settings in (("plain", plain), ("averaged", averaged)):
        events = list(run_training(settings, tmp_path / name))
        losses.append([event.loss for event in events if hasattr(event, "loss")])
    assert losses[0] == losses[1]
    first, second = (load(tmp_path / name).method.state_dict() for name in ("plain", "averaged"))
    assert not torch.equal(first["spans.out.weight"], second["spans.out.weight"])


def test_training_continues_from_weights_in_half_precision(folder, encoder, tmp_path):
    settings = run_settings(folder, encoder)
    method = new_method(settings)
    with torch.no_grad():
        for weight in method.parameters():
            weight.copy_(weight.half().float())
    save(tmp_path / "half", method, settings.model)
    stored = load_file(tmp_path / "half" / "weights.safetensors")
    assert stored["spans.out.weight"].dtype == torch.float16
    continued = run_settings(folder, encoder, start=str(tmp_path / "half"), steps=1)
    assert new_method(continued).equals(method)
    assert len(list(run_training(continued, tmp_path / "run"))) == 3


def test_a_pool_gives_vector_methods_the_mean_loss_of_its_episodes(folder, encoder):
    method = new_method(run_settings(folder, encoder, "esd")).eval()
    pool = pools(folder, count=1)[0]
    with torch.no_grad():
        single = [method.episode_loss(episode).item() for episode in pool.full_episodes()]
        assert method.pool_loss(pool).item() == pytest.approx(sum(single) / len(single), abs=1e-4)


def test_a_pool_of_one_episode_with_and_without_names_has_the_loss_of_that_episode(folder, encoder):
    method = new_method(run_settings(folder, encoder)).eval()
    episode = toy_episodes(1, support=5, query=3, seed=3)[0]
    sentences = (*episode.support.sentences, *episode.query)
    support, query = tuple(range(5)), tuple(range(5, 8))
    assert len(sentences) == 8
    names = {label: label for label in episode.support.labels}

    def loss(named: bool) -> float:
        part = PoolEpisode(episode.support.labels, support, query, named)
        return method.pool_loss(Pool(sentences, names, (part,))).item()

    with torch.no_grad():
        both = method.episode_loss(episode).item()
        assert 2 / 3 * loss(True) + 1 / 3 * loss(False) == pytest.approx(both, abs=1e-4)
