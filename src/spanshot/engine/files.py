"""The files of a model for the engine, and how they are opened.

engine.toml            pieces, candidates, the head, scores, and a test with known answers
spans.onnx             the graph from pieces to span vectors
spans-int8.onnx        the same with 8-bit matrix products
names.onnx             the graph from label names to priors
weights.safetensors    all weights; the graphs take theirs from this file
tokenizer.json         the tokenizer

None of the files is trusted: settings are checked, graphs may use a few operations only, and a test sentence must be
encoded as it was when the model was exported. So a graph that saturates on this processor is not used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from spanshot.engine.encoder import Session, SpanEncoder
from spanshot.engine.graph_file import Tensors, read_graph
from spanshot.engine.layout import NAMES, SPANS, SPANS_INT8, TOKENIZER, WEIGHTS
from spanshot.engine.pieces import build_pieces, read_tokenizer
from spanshot.engine.spans import LONGEST, candidates
from spanshot.engine.threads import default_threads
from spanshot.engine.weights_file import read_weights
from spanshot.errors import CheckpointError, ConfigError, SpanshotError
from spanshot.heads.settings import HeadSettings, ScoreSettings
from spanshot.settings import build, parse_toml, to_table, to_toml

DTYPES = {"float32": SPANS, "int8": SPANS_INT8}
DTYPE_VARIABLE = "SPANSHOT_DTYPE"
TEST_WORDS = ("Ada", "Lovelace", "wrote", "the", "first", "program", "in", "1843", ".")
TEST_SPANS = ((0, 2), (7, 8))
TEST_NAME = "person"
TEST_VALUES = 24
TOLERANCE = 1e-3
LEAST_COSINE = 0.9
"""For 8-bit graphs, whose vectors differ. A graph that saturates is far below."""
_LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class PieceSettings:
    """How words become pieces."""

    longest: int = 512
    """The most pieces that the encoder reads at once."""
    padding_id: int = 0
    """The number of the piece that fills up rows."""
    unknown: str = ""
    """The piece for words that yield none; none if empty."""

    def __post_init__(self) -> None:
        if not 8 <= self.longest <= 8192 or not 0 <= self.padding_id < 10**7:
            raise ConfigError("longest must be from 8 to 8192 and padding_id from 0 on")


@dataclass(frozen=True, slots=True)
class TestSettings:
    """Known answers: the first values of the vectors of two spans of a fixed sentence, and of the prior of a name."""

    spans: tuple[float, ...] = ()
    name: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The content of `engine.toml`."""

    pieces: PieceSettings = field(default_factory=PieceSettings)
    head: HeadSettings = field(default_factory=HeadSettings)
    scores: ScoreSettings = field(default_factory=ScoreSettings)
    test: TestSettings = field(default_factory=TestSettings)
    longest: int = LONGEST
    """Most words of a candidate span, unless an example is longer."""

    def __post_init__(self) -> None:
        if not 1 <= self.longest <= 64:
            raise ConfigError(f"longest must be from 1 to 64; found {self.longest}")
        for settings in (self.head, self.scores, self.test):
            for name, value in to_table(settings).items():
                for number in value if isinstance(value, list) else [value]:
                    if not -_LARGEST <= number <= _LARGEST:
                        raise ConfigError(f"{name} is out of range")
        head = self.head
        if min(head.shrink_named, head.shrink_nameless, head.factor_named, head.factor_nameless, head.bias) <= 0:
            raise ConfigError("the penalties of the head must be above 0")
        if (
            head.background < 0
            or self.scores.slope <= 0
            or self.scores.name_slope <= 0
            or self.scores.most_examples < 1
        ):
            raise ConfigError("background, slopes and most_examples must be positive")

    @classmethod
    def parse(cls, text: str) -> EngineSettings:
        """Read `engine.toml`."""
        return build(cls, parse_toml(text))

    def to_toml(self) -> str:
        """Return the text that `parse` reads."""
        return to_toml(to_table(self))


def default_dtype() -> str:
    """Return ``SPANSHOT_DTYPE``, or ``"float32"``."""
    dtype = os.environ.get(DTYPE_VARIABLE) or "float32"
    if dtype not in DTYPES:
        raise ConfigError(f"{DTYPE_VARIABLE} must be one of {', '.join(DTYPES)}; found {dtype!r}")
    return dtype


def open_encoder(
    files: Mapping[str, bytes],
    settings: EngineSettings,
    dtype: str = "float32",
    threads: int | None = None,
    *,
    check: bool = True,
) -> SpanEncoder:
    """Build the encoder of a model and run its test. Every problem is a `CheckpointError` that names the file."""
    if dtype not in DTYPES:
        raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}; found {dtype!r}")
    if dtype == "int8" and SPANS_INT8 not in files:
        raise CheckpointError("the model was exported without 8-bit weights; use float32, or export it again")
    threads = default_threads() if threads is None else threads
    if threads < 1:
        raise ConfigError(f"threads must be at least 1; found {threads}")
    piece_settings = settings.pieces
    path = Path(TOKENIZER)
    try:
        pieces = build_pieces(
            read_tokenizer(_content(files, TOKENIZER), path),
            longest=piece_settings.longest,
            unknown=piece_settings.unknown or None,
            padding_id=piece_settings.padding_id,
            path=path,
        )
        weights = read_weights(_content(files, WEIGHTS))
        encoder = SpanEncoder(pieces, *(_open_graph(files, name, weights, threads) for name in (DTYPES[dtype], NAMES)))
        if check:
            _check_answers(encoder, settings.test, exact=dtype == "float32")
    except CheckpointError:
        raise
    except SpanshotError as problem:
        raise CheckpointError(str(problem)) from None
    return encoder


def _open_graph(files: Mapping[str, bytes], name: str, weights: Tensors, threads: int) -> Session:
    try:
        return Session(read_graph(_content(files, name)), weights, threads)
    except SpanshotError as problem:
        raise CheckpointError(f"{name}: {problem}") from None


def _content(files: Mapping[str, bytes], name: str) -> bytes:
    if name not in files:
        raise CheckpointError(f"the model has no file {name!r}")
    return files[name]


def answers(encoder: SpanEncoder) -> TestSettings:
    """Return what the encoder answers to the test."""
    bounds = candidates(len(TEST_WORDS), tuple(range(1, LONGEST + 1)))
    ((_, found),) = encoder.encode([TEST_WORDS], [bounds])
    rows = [bounds.tolist().index(list(span)) for span in TEST_SPANS]
    prior = encoder.encode_names([TEST_NAME])
    values = [round(float(value), 6) for row in rows for value in found.vectors[row, :TEST_VALUES]]
    return TestSettings(tuple(values), tuple(round(float(value), 6) for value in prior.weights[0, :TEST_VALUES]))


def _check_answers(encoder: SpanEncoder, known: TestSettings, *, exact: bool) -> None:
    try:
        given = answers(encoder)
    except SpanshotError:
        raise
    except Exception as problem:  # whatever onnxruntime raises for a graph that does not fit
        reason = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
        raise CheckpointError(f"the model's graphs do not work: {reason}") from None
    for now, then in ((given.spans, known.spans), (given.name, known.name)):
        first, second = np.array(now), np.array(then)
        if first.shape != second.shape:
            raise CheckpointError("the model's test is missing or has another size")
        if not np.isfinite(first).all() or not np.isfinite(second).all():
            raise CheckpointError("the model's vectors are not numbers")
        largest = TOLERANCE * max(1.0, float(np.abs(second).max()))
        cosine = float(first @ second / max(1e-9, np.linalg.norm(first) * np.linalg.norm(second)))
        if (exact and np.abs(first - second).max() > largest) or cosine < LEAST_COSINE:
            raise CheckpointError(
                "the model gives other vectors than when it was exported: its files do not belong together, or "
                "an installed library works differently on this processor"
            )
