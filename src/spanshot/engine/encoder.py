"""Sentences to span vectors, and label names to priors: batches of pieces, and two graphs run by onnxruntime."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import onnxruntime

from spanshot.engine.graph_file import GraphFile, Tensors
from spanshot.engine.pieces import Pieces, Row
from spanshot.engine.spans import Bounds, SpanVectors
from spanshot.errors import CheckpointError
from spanshot.heads.linear import Floats, Prior
from spanshot.words import batches

MAX_BATCH_PIECES = 512
"""Most pieces of a batch, padding included."""
PIECES_PER_THREAD = 128
"""The same for each thread. With one thread, 128 was the fastest of 32 to 512, in float32 and int8."""
_MOST_NAMES = 1000
_SPAN = np.array([0], np.int64), np.array([1], np.int64)
_SEVERE = 3  # log errors only

Arrays = Mapping[str, npt.NDArray[np.generic]]


class SpanEncoder:
    """Encodes sentences and label names. Sentences of like length are read together; none depends on the others."""

    def __init__(self, pieces: Pieces, spans: Session, names: Session) -> None:
        self.pieces = pieces
        self._spans = spans
        self._names = names
        self._priors: dict[str, tuple[Floats, np.float32]] = {}

    def encode(
        self,
        sentences: Sequence[Sequence[str]],
        bounds: Sequence[Bounds],
        max_pieces: int = MAX_BATCH_PIECES,
    ) -> Iterator[tuple[int, SpanVectors]]:
        """Yield the number of each sentence and the vectors of its spans, as soon as they are ready, in any order.

        ``sentences`` are lists of words and ``bounds`` the spans of each.
        """
        max_pieces = min(max_pieces, PIECES_PER_THREAD * self._spans.threads)
        rows_of: list[list[Row]] = [[] for _ in sentences]  # a long sentence has several
        for row in self.pieces.rows(sentences):
            rows_of[row.sentence].append(row)
        for numbers in batches([sum(len(row.ids) for row in rows) for rows in rows_of], max_pieces):
            rows = [row for number in numbers for row in rows_of[number]]
            first_words = accumulate((len(sentences[number]) for number in numbers), initial=0)
            spans_of = [bounds[number] for number in numbers]
            spans = np.concatenate([inside + first for inside, first in zip(spans_of, first_words, strict=False)])
            vectors = (
                self._run("vectors", rows, spans[:, 0], spans[:, 1]) if len(spans) else np.zeros((0, 0), np.float32)
            )
            ends = accumulate(map(len, spans_of))
            for number, inside, end in zip(numbers, spans_of, ends, strict=True):
                yield number, SpanVectors(inside, vectors[end - len(inside) : end])

    def encode_bare(self, sentences: Sequence[Sequence[str]], max_pieces: int = MAX_BATCH_PIECES) -> None:
        """Run the encoder alone, without spans and labels; for benchmarks."""
        max_pieces = min(max_pieces, PIECES_PER_THREAD * self._spans.threads)
        rows = self.pieces.rows(sentences)
        for numbers in batches([len(row.ids) for row in rows], max_pieces):
            self._run("hidden", [rows[number] for number in numbers], *_SPAN)

    def encode_names(self, names: Sequence[str]) -> Prior:
        """Return the prior of each label, by its name or description; an empty name is one that says nothing."""
        if len(self._priors) > _MOST_NAMES:
            self._priors = {}
        for name in names:
            if name not in self._priors:
                self._priors[name] = self._prior(name)
        weights, bias = zip(*(self._priors[name] for name in names), strict=True)
        return Prior(np.stack(weights), np.array(bias, np.float32), tuple(bool(name) for name in names))

    def _prior(self, name: str) -> tuple[Floats, np.float32]:
        row = self.pieces.rows([name.split() or ["?"]])[0]
        mean = self._run("hidden", [row], *_SPAN).mean(0, keepdims=True)
        weights, bias = self._names.run(["weights", "bias"], {"mean": mean, "named": np.array([bool(name.split())])})
        return weights[0], bias[0]

    def _run(self, output: str, rows: Sequence[Row], starts: Bounds, ends: Bounds) -> Floats:
        """Pad the rows to one length and run the graph."""
        width = max(len(row.ids) for row in rows)
        pieces = np.full((len(rows), width), self.pieces.padding_id, np.int64)
        mask = np.zeros((len(rows), width), np.bool_)
        for number, row in enumerate(rows):
            pieces[number, : len(row.ids)] = row.ids
            mask[number, : len(row.ids)] = True
        inputs = {
            "pieces": pieces,
            "mask": mask,
            "first": np.array([at + n * width for n, row in enumerate(rows) for at in row.first], np.int64),
            "last": np.array([at + n * width for n, row in enumerate(rows) for at in row.last], np.int64),
            "starts": np.ascontiguousarray(starts),
            "ends": np.ascontiguousarray(ends),
        }
        return self._spans.run([output], inputs)[0]


class Session:
    """Runs a graph. It can be used from several threads, and in a process that was forked after it was made.

    A fork does not copy the threads that compute, so the child makes a session of its own when it first needs one.
    """

    def __init__(self, graph: GraphFile, weights: Tensors, threads: int) -> None:
        self._content = graph.content
        values = graph.values(weights)
        self._values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in values.items()}
        self._arrays = values  # the memory that the values refer to
        self.threads = threads
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._session = self._open()

    def run(self, outputs: Sequence[str], inputs: Arrays) -> list[Floats]:
        """Return the named outputs for the inputs."""
        if self._process != os.getpid():
            self._reopen()
        results: list[Floats] = self._session.run(list(outputs), dict(inputs))
        return results

    def _open(self) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _SEVERE
        options.enable_mem_pattern = False  # shapes differ from call to call
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.add_external_initializers(list(self._values), list(self._values.values()))
        try:
            return onnxruntime.InferenceSession(self._content, options, providers=["CPUExecutionProvider"])
        except Exception as problem:  # onnxruntime has no common base class for its errors
            reason = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
            raise CheckpointError(f"the model cannot be opened by onnxruntime: {reason}") from None

    def _reopen(self) -> None:
        with self._lock:
            if self._process != os.getpid():
                # The parent's session must not be freed here: that would wait for threads which do not exist.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
                self._session = self._open()
                self._process = os.getpid()
