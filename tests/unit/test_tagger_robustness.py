"""A tagger in the hands of users: wrong arguments, long entities, line breaks, processes and threads."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import spanshot
from spanshot.decode.conflicts import FLAT
from spanshot.decode.scores import SpanScores
from spanshot.decode.spans import SpanDecoder
from spanshot.errors import CheckpointError, ConfigError, InputError, SpanshotError
from spanshot.model import Model, cut, load, load_model
from spanshot.research.checkpoint import new_method
from spanshot.research.nn.encoder import WordVectors
from spanshot.tagger import Tagger
from spanshot.types import LearnOptions, ScoredSpan, Sentence, Span, SupportSet
from tiny import toy_episodes, write_tiny_encoder
from tiny_esd import untrained_settings

CITY = SupportSet.of([Sentence(("Rome",), (Span(0, 1, "city"),))])
TEXT = "they asked for Oslo with apple pie today ; Ada again ! New York is not rice"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    settings = untrained_settings(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))
    return Model(new_method(settings).eval(), settings.model)


@pytest.fixture(scope="module")
def tagger(model) -> Tagger:
    (episode,) = toy_episodes(1, labels=("city", "dish"), support=6, seed=4)
    learned = model.learn(episode.support)
    return replace(learned, sentence_tagger=replace(learned.sentence_tagger, o_bias=1000.0))


def nothing(sentences):
    return [[] for _ in sentences]


# Wrong arguments


@pytest.mark.parametrize("text", [None, b"x", ["a", "b"], 3, {"text": "a"}])
def test_a_text_that_is_none_is_refused_in_one_line(text):
    with pytest.raises(InputError, match="expected a text") as error:
        Tagger(nothing, CITY)(text)
    assert isinstance(error.value, SpanshotError)
    assert isinstance(error.value, TypeError)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("texts", ["Paris", b"Paris", None, 3])
def test_a_stream_that_is_a_single_text_is_refused_at_once(texts):
    with pytest.raises(InputError, match="iterable of texts"):
        Tagger(nothing, CITY).pipe(texts)


def test_a_stream_with_something_else_than_texts_is_refused():
    with pytest.raises(InputError, match="found NoneType"):
        list(Tagger(nothing, CITY).pipe(["a", None]))


@pytest.mark.parametrize("examples", [True, None, 3, 2.5])
def test_examples_that_are_none_are_refused_in_one_line(model, examples):
    with pytest.raises(InputError, match="expected examples"):
        model.learn(examples)


def test_lines_of_a_string_are_examples_as_those_of_a_file_are(model, tmp_path):
    lines = "in [Oslo](city)\nto [Rome](city)\n"
    (tmp_path / "examples.txt").write_text(lines, encoding="utf-8")
    assert model.learn(lines).support == model.learn(tmp_path / "examples.txt").support
    assert len(model.learn(lines).support.sentences) == 2


def test_scores_that_are_no_numbers_are_an_error_and_not_an_entity():
    scores = SpanScores(("city",), np.array([[0, 1]]), np.array([[0.0, np.nan]]))
    with pytest.raises(CheckpointError, match="not numbers"):
        SpanDecoder(FLAT)(scores)


# Streams


@pytest.mark.parametrize("size", [1, 10, 256])
def test_a_batch_has_the_size_asked_for_and_is_read_before_its_first_result(size):
    seen, read = [], []

    def watching(sentences):
        seen.append(len(sentences))
        return nothing(sentences)

    def texts():
        for number in range(600):
            read.append(number)
            yield "to Rome now"

    stream = Tagger(watching, CITY).pipe(texts(), batch_size=size)
    next(stream)
    assert len(read) == size
    assert len(list(stream)) == 599
    assert seen == [size] * (600 // size) + ([600 % size] if 600 % size else [])


def test_no_more_words_are_encoded_at_once_than_asked_for(model, tagger, monkeypatch):
    sizes = []
    scores = type(model.method).scores

    def watching(self, memory, sentences):
        sizes.append([len(sentence) for sentence in sentences])
        return scores(self, memory, sentences)

    monkeypatch.setattr(type(model.method), "scores", watching)
    small = replace(tagger, sentence_tagger=replace(tagger.sentence_tagger, max_batch_words=60))
    texts = ["a " * length for length in (1, 40, 3, 30, 2, 20, 100, 4)] * 3
    list(small.pipe(texts))
    assert all(len(batch) == 1 or len(batch) * max(batch) <= 60 for batch in sizes)
    assert max(map(len, sizes)) > 3


# Windows and lines


def fragments(sentences):
    """A scorer that finds the run of X words in a window, or the part of it that the window shows."""
    found = []
    for sentence in sentences:
        inside = [at for at, word in enumerate(sentence.words) if word == "X"]
        found.append([ScoredSpan(Span(inside[0], inside[-1] + 1, "title"), 0.9)] if inside else [])
    return found


@pytest.mark.parametrize("length", [1, 31, 33, 60, 100, 128, 150, 300])
def test_an_entity_as_long_as_an_example_is_found_at_every_offset(length):
    support = SupportSet.of([Sentence(("X",) * length, (Span(0, length, "title"),))])
    tagger = Tagger(fragments, support)
    for offset in range(0, 260, 1 if length in {33, 60} else 7):
        text = "a " * offset + "X " * length + "b " * 200
        (entity,) = tagger(text)
        assert (entity.start, entity.text) == (2 * offset, ("X " * length).strip())


def test_an_entity_never_spans_a_line_break():
    seen = []

    def watching(sentences):
        seen.extend(sentence.words for sentence in sentences)
        return fragments(sentences)

    (one, two) = Tagger(watching, CITY)("a X\nX b\r\n\r\nc")
    assert (one.text, two.text) == ("X", "X")
    assert seen == [("a", "X"), ("X", "b"), ("c",)]


def test_an_entity_spans_a_line_break_if_one_of_an_example_does(model):
    apart = Sentence.of_text("in New York\nor", [Span(1, 3, "city")])
    across = Sentence.of_text("in New\nYork", [Span(1, 3, "city")])
    assert model.learn([apart]).by_line
    assert not model.learn([apart, across]).by_line
    (entity,) = Tagger(fragments, CITY, by_line=False)("a X\nX b")
    assert entity.text == "X\nX"


@given(
    st.lists(st.sampled_from(["a", "b\n", "c"]), min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(0, 59), st.integers(1, 9)), max_size=8),
    st.integers(2, 20),
)
def test_long_examples_are_cut_between_entities_and_nothing_is_lost(words, places, window):
    spans = [Span(a, min(a + n, len(words)), "x") for a, n in places if a < len(words)]
    text = " ".join(words)
    sentence = Sentence.of_text(text, [*spans, Span(0, 1, "y")])
    support = SupportSet.of([sentence, Sentence(("z",), (Span(0, 1, "y"),))])
    by_line = not any("\n" in sentence.text_of(span.start, span.end) for span in sentence.spans)
    pieces, origins = cut(support, window, by_line=by_line)
    assert sum((piece.words for piece in pieces.sentences), ()) == (*sentence.words, "z")
    back = {
        Span(span.start + first, span.end + first, span.label)
        for piece, (number, first) in zip(pieces.sentences, origins, strict=True)
        for span in piece.spans
        if number == 0
    }
    assert back == set(sentence.spans)
    longest = max(window, sum(len(span) for span in sentence.spans))
    assert all(len(piece) <= longest for piece in pieces.sentences)


def test_reasons_quote_the_whole_of_a_long_example(model):
    text = "x " * 300 + "in Oslo today"
    record = {"text": text, "entities": [{"start": 603, "end": 607, "label": "city"}]}
    learned = model.learn([record])
    learned = replace(learned, sentence_tagger=replace(learned.sentence_tagger, o_bias=1000.0))
    reasons = {(reason.text, reason.example) for entity in learned("to Rome") for reason in entity.because}
    assert reasons == {("Oslo", text)}


# Memory


def test_one_long_example_does_not_pad_the_others(model, monkeypatch):
    widths = []
    forward = type(model.method.span_head).forward

    def watching(self, words, bounds):
        widths.append((len(bounds), max(len(own) for own in bounds)))
        return forward(self, words, bounds)

    monkeypatch.setattr(type(model.method.span_head), "forward", watching)
    examples = [f"in [Oslo](city) {'x ' * 8}" for _ in range(40)] + [f"in [Rome](city) {'y ' * 400}"]
    model.learn(examples)
    assert all(rows == 1 or rows * spans <= 512 * 8 for rows, spans in widths)
    assert max(spans for _, spans in widths) <= 128 * 8


def test_fine_tuning_on_many_examples_uses_a_sample_in_each_step(model, monkeypatch):
    words, steps = [], []
    loss = type(model.method).episode_loss

    def watching(self, episode):
        words.append(sum(len(s) for s in (*episode.support.sentences, *episode.query)))
        return loss(self, episode)

    monkeypatch.setattr(type(model.method), "episode_loss", watching)
    examples = [f"in [Oslo](city) number {number} {'x ' * 20}" for number in range(300)]
    model.learn(examples, finetune=True, progress=lambda done, total: steps.append((done, total)))
    assert max(words) <= 2000
    assert steps == [(step, 10) for step in range(1, 11)]


# Values


def test_taggers_that_learned_the_same_are_equal_and_have_one_hash(model, tagger):
    again, other = model.learn(tagger.support), model.learn(["in [Oslo](city)"])
    assert again == tagger
    assert hash(again) == hash(tagger)
    assert other != tagger
    assert model.learn(tagger.support, nested=True) != tagger
    assert len({again, tagger, other}) == 2


def test_a_tagger_prints_in_a_line(model):
    examples = [f"in [Oslo](label{number})" for number in range(50)]
    shown = repr(model.learn(examples))
    assert (
        shown
        == "Tagger(labels=['label0', 'label1', 'label10', 'label11', 'label12', …], examples=50, model=Model('esd'))"
    )


def test_the_package_lists_its_public_names():
    assert set(spanshot.__all__) <= set(dir(spanshot))
    assert {"learn", "load", "load_model", "Tagger", "Model"} <= set(dir(spanshot))
    assert all(getattr(spanshot, name) is not None for name in dir(spanshot))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = spanshot.nonsense


# Processes, threads and devices


def test_a_pickled_tagger_finds_the_same(tagger):
    back = pickle.loads(pickle.dumps(tagger))
    assert back == tagger
    assert back(TEXT) == tagger(TEXT) != []


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_used_tagger_works_in_a_child_process_whatever_the_threads(tagger, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        text = TEXT * 20
        wanted = [(entity.text, entity.label) for entity in tagger(text)]
        with multiprocessing.get_context(method).Pool(1) as pool:
            found = pool.apply_async(tagger, [text]).get(timeout=300)
        assert [(entity.text, entity.label) for entity in found] == wanted
    finally:
        torch.set_num_threads(threads)


def test_threads_and_coroutines_share_a_tagger(tagger):
    texts = [TEXT, "Oslo again !", "we saw Ada ."] * 4
    wanted = [tagger(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(tagger, texts)) == wanted

    async def together():
        return await asyncio.gather(*(asyncio.to_thread(tagger, text) for text in texts))

    assert asyncio.run(together()) == wanted


def test_a_model_is_loaded_to_the_device_asked_for(model, tagger, tmp_path):
    tagger.save(tmp_path / "mine")
    assert load_model(tmp_path / "mine", device="cpu:0").method.encoder.device.type == "cpu"
    assert load(tmp_path / "mine", device="cpu") == load(tmp_path / "mine")
    assert {weight.device.type for weight in load_model(tmp_path / "mine", "meta").method.parameters()} == {"meta"}
    with pytest.raises(ConfigError, match="device 'nowhere' cannot be used"):
        load_model(tmp_path / "mine", device="nowhere")


def test_every_tensor_of_spans_follows_the_device_of_the_words(model, monkeypatch):
    """On the meta device, an operation with a tensor that stayed on the CPU fails."""
    monkeypatch.setattr("torch.fx.experimental._config.meta_nonzero_assume_all_nonzero", True)
    method = pickle.loads(pickle.dumps(model.method)).to("meta")
    vectors = torch.empty(2, method.encoder.size, device="meta")
    support = SupportSet.of([Sentence(("to", "Rome"), (Span(1, 2, "city"),))])
    with torch.inference_mode():
        words = WordVectors(vectors, vectors, (2,))
        (logits,) = method.logits(method.memory_of(support, words), words)
    assert logits.logits.device.type == "meta"


def test_a_fine_tuned_tagger_is_the_same_once_loaded_also_after_more_examples(model, tmp_path):
    (episode,) = toy_episodes(1, labels=("city", "dish"), support=8, seed=4)
    tuned = model.learn(episode.support, finetune=True)
    assert tuned.tuned is not None
    tuned.save(tmp_path / "mine")
    back = load(tmp_path / "mine")
    assert back == tuned
    for one, other in ((back, tuned), (back.add(["in [Lima](city)"]), tuned.add(["in [Lima](city)"]))):
        (_, scores), (_, wanted) = (
            next(own.sentence_tagger.scores([Sentence(("to", "Rome"))])) for own in (one, other)
        )
        assert np.allclose(scores.scores, wanted.scores, atol=1e-6)
        assert one.options == other.options == LearnOptions(finetune=True)
