"""The engine on onnxruntime: batches, windows, forks, pickles, and files that cannot be trusted."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save

from spanshot.checkpoint import packaged_folder
from spanshot.engine.encoder import SpanEncoder
from spanshot.engine.files import EngineSettings, open_encoder
from spanshot.engine.graph_file import quantise, read_graph
from spanshot.engine.layout import ENGINE, NAMES, SPANS, SPANS_INT8, WEIGHTS
from spanshot.engine.spans import SpanVectors, candidate_widths, candidates, with_spans
from spanshot.engine.threads import default_threads
from spanshot.engine.weights_file import read_weights
from spanshot.errors import CheckpointError, ConfigError
from spanshot.learner import LinearLearner
from spanshot.model import embedded_model
from spanshot.saved_tagger import PackagedFiles

SENTENCES = [("Ada", "left", "Oslo", "."), ("in", "1843"), ("the", "Analytical", "Engine", "of", "Charles", "Babbage")]
FILES = PackagedFiles()()


@pytest.fixture(scope="module")
def encoder() -> SpanEncoder:
    learner = embedded_model().method
    assert isinstance(learner, LinearLearner)
    return learner.encoder


def encoded(encoder: SpanEncoder, sentences=SENTENCES, **options: int) -> list[np.ndarray]:
    bounds = [candidates(len(words), candidate_widths()) for words in sentences]
    found = dict(encoder.encode(sentences, bounds, **options))
    return [found[number].vectors for number in range(len(sentences))]


def test_vectors_have_length_one_and_do_not_depend_on_the_batch(encoder):
    together = encoded(encoder)
    for words, vectors in zip(SENTENCES, together, strict=True):
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert np.allclose(vectors, encoded(encoder, [words])[0], atol=1e-5)
    for one, other in zip(together, encoded(encoder, max_pieces=1), strict=True):
        assert np.allclose(one, other, atol=1e-5)


def test_a_sentence_of_thousands_of_words_is_read_in_windows(encoder):
    words = ("Ada", "met", "Charles") * 700
    spans = np.array([[0, 1], [1000, 1001], [2099, 2100]])
    ((_, found),) = encoder.encode([words], [spans])
    assert found.vectors.shape[0] == 3
    assert np.isfinite(found.vectors).all()


def test_names_say_something_and_an_empty_name_nothing(encoder):
    prior = encoder.encode_names(["person", "", "person", "dose of a drug"])
    assert prior.named == (True, False, True, True)
    assert np.array_equal(prior.weights[0], prior.weights[2])
    assert not np.allclose(prior.weights[0], prior.weights[1])


def test_vectors_of_some_spans_are_taken_from_those_of_all():
    bounds = candidates(4, (1, 2))
    spans = SpanVectors(bounds, np.arange(len(bounds), dtype=np.float32)[:, None])
    assert spans.of(candidates(4, (1, 2))) is spans
    assert spans.of(bounds[2:5]).vectors.ravel().tolist() == [2, 3, 4]
    assert spans.of(bounds[:0]).vectors.shape == (0, 1)
    assert spans.of(np.array([[0, 1], [0, 3]])) is None
    assert spans.of(np.array([[5, 6]])) is None
    assert SpanVectors(bounds[:0], spans.vectors[:0]).of(bounds) is None


def test_candidates_are_as_wide_as_the_widest_example():
    assert candidate_widths([20]) == tuple(range(1, 21))
    wide = candidate_widths([3, 500])
    assert 500 in wide
    assert len(wide) < 60
    assert with_spans(candidates(30, (1, 2)), [(3, 20), (0, 1)]).tolist()[8] == [3, 20]


def child(queue: multiprocessing.Queue) -> None:
    queue.put(encoded(embedded_model().method.encoder)[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes_the_same(encoder):
    expected = encoded(encoder)[0]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    found = queue.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0
    assert np.allclose(found, expected, atol=1e-5)


TWO_THREADS_AND_A_FORK = """
import os
from spanshot.model import embedded_model
model = embedded_model(threads=2)
tagger = model.learn(["in [Oslo](city)"])
before = tagger("We met in Rome.")
child = os.fork()
if child == 0:
    os._exit(0 if tagger("We met in Rome.") == before else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_of_the_parent_do_not_block_a_forked_child():
    done = subprocess.run([sys.executable, "-c", TWO_THREADS_AND_A_FORK], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_pickle_of_the_packaged_model_is_small_and_equal():
    model = embedded_model()
    pickled = pickle.dumps(model)
    assert len(pickled) < 2000
    assert pickle.loads(pickled) == model


def test_threads_are_taken_from_the_environment(monkeypatch):
    monkeypatch.delenv("SPANSHOT_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert default_threads() == 3
    monkeypatch.setenv("SPANSHOT_THREADS", "5")
    assert default_threads() == 5
    monkeypatch.setenv("SPANSHOT_THREADS", "many")
    with pytest.raises(ConfigError, match="SPANSHOT_THREADS"):
        default_threads()
    monkeypatch.delenv("SPANSHOT_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert 1 <= default_threads() <= (os.cpu_count() or 1)


def test_eight_bits_give_similar_vectors(encoder):
    eight = open_encoder(FILES, EngineSettings.parse(FILES[ENGINE].decode()), "int8", threads=1)
    for exact, rough in zip(encoded(encoder), encoded(eight), strict=True):
        assert (exact * rough).sum(1).mean() > 0.98


def test_the_precision_is_taken_from_the_environment(monkeypatch):
    monkeypatch.setenv("SPANSHOT_DTYPE", "int8")
    assert LinearLearner.open(FILES, threads=1).dtype == "int8"
    assert LinearLearner.open(FILES, dtype="float32", threads=1).dtype == "float32"
    monkeypatch.setenv("SPANSHOT_DTYPE", "int4")
    with pytest.raises(ConfigError, match="SPANSHOT_DTYPE must be one of float32, int8; found 'int4'"):
        LinearLearner.open(FILES, threads=1)


def test_quantised_columns_are_within_half_a_step():
    matrix = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32)
    values, scale = quantise(matrix)
    assert (abs(values * scale - matrix) <= 0.51 * scale + 1e-6).all()


def test_quantised_products_do_not_saturate():
    matrix = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32)
    values, _ = quantise(matrix * 1e6)
    # Processors without VNNI add two products of an unsigned and a signed byte in 16 bits.
    assert 2 * 255 * int(abs(values.astype(int)).max()) < 2**15


def test_weights_that_do_not_belong_to_the_graphs_are_detected_by_the_test_with_known_answers():
    from safetensors import numpy as tensors

    weights = dict(read_weights(FILES[WEIGHTS]))
    name = next(name for name in weights if name.endswith("layer.3.output.dense.weight"))
    weights[name] = weights[name][::-1].copy()
    with pytest.raises(CheckpointError, match="other vectors than when it was exported"):
        LinearLearner.open({**FILES, WEIGHTS: tensors.save(weights)}, threads=1)
    del weights[name]
    with pytest.raises(CheckpointError, match="the weights lack"):
        LinearLearner.open({**FILES, WEIGHTS: tensors.save(weights)}, threads=1)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (ENGINE, b"\xff", "not UTF-8"),
        (ENGINE, b"longest = 9999", "longest"),
        (ENGINE, b"unknown_setting = 1", "unknown setting"),
        (ENGINE, b"[head]\nshrink_named = -1.0", "penalties"),
        (ENGINE, b"[head]\nslope = nan", "out of range"),
        (SPANS, b"", "not a graph"),
        (SPANS, b"\x00" * 50, "not a graph"),
        (SPANS, FILES[SPANS][: len(FILES[SPANS]) // 2], "not a graph"),
        (SPANS, FILES[SPANS].replace(b"Gelu", b"Loop"), "operation 'Loop'"),
        (NAMES, FILES[SPANS], "do not work"),
        (NAMES, b"\x3a\x84\x80\x80\x80\x80\x80\x80\x80\x80\x01", "not a graph"),
        (WEIGHTS, b"", "damaged"),
        (WEIGHTS, b"\xff" * 200, "damaged"),
        ("tokenizer.json", b"{}", "not a tokenizer"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_damaged_and_forged_files_are_refused_in_one_line(file, content, message):
    with pytest.raises(CheckpointError) as raised:
        LinearLearner.open({**FILES, file: content}, threads=1)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named():
    with pytest.raises(CheckpointError, match=r"spans\.onnx"):
        LinearLearner.open({name: content for name, content in FILES.items() if name != SPANS}, threads=1)


def test_graphs_hold_no_weights_of_their_own():
    for name in (SPANS, SPANS_INT8, NAMES):
        assert len(FILES[name]) < 100_000
        assert read_graph(FILES[name]).tensors


def test_the_package_does_not_import_torch_to_tag():
    program = (
        "import sys, spanshot\n"
        "assert 'numpy' not in sys.modules and 'onnxruntime' not in sys.modules\n"
        "assert spanshot.learn(['in [Oslo](city)'])('in Rome')\n"
        "assert not {'torch', 'transformers', 'onnx'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_digest_of_the_folder_is_that_of_the_files():
    from spanshot.engine.layout import digest_of
    from spanshot.saved_tagger import packaged_digest

    assert packaged_folder().is_dir()
    assert packaged_digest() == digest_of(FILES) == embedded_model().method.digest


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_weights_that_are_not_finite_are_refused(kind, value):
    weights = np.full((3, 4), np.finfo(kind).max, kind)
    assert read_weights(save({"w": weights})).keys() == {"w"}
    weights[1, 2] = value
    with pytest.raises(CheckpointError, match="not finite"):
        read_weights(save({"w": weights}))
