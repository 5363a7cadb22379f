"""Sentences to span vectors, and label names to priors: pieces, batches, and two graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from spanshot.engine.pieces import Pieces, Row
from spanshot.engine.session import Session
from spanshot.engine.spans import Bounds, SpanVectors
from spanshot.heads.linear import Prior
from spanshot.heads.rows import Floats
from spanshot.words import batches

MAX_BATCH_PIECES = 512
"""Most pieces of a batch, padding included."""
_MOST_NAMES = 1000
_SPAN = np.array([0], np.int64), np.array([1], np.int64)


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
        rows_of: list[list[Row]] = [[] for _ in sentences]
        for row in self.pieces.rows(sentences):
            rows_of[row.sentence].append(row)
        for numbers in _groups(rows_of, max_pieces):
            own = [bounds[number] for number in numbers]
            rows = [row for number in numbers for row in rows_of[number]]
            words = [0, *accumulate(len(sentences[number]) for number in numbers)]
            places = np.concatenate([spans + base for spans, base in zip(own, words, strict=False)])
            if not len(places):
                yield from (
                    (number, SpanVectors(spans, np.zeros((0, 0), np.float32)))
                    for number, spans in zip(numbers, own, strict=True)
                )
                continue
            vectors = self._run("vectors", rows, places[:, 0], places[:, 1])
            at = 0
            for number, spans in zip(numbers, own, strict=True):
                yield number, SpanVectors(spans, vectors[at : at + len(spans)])
                at += len(spans)

    def encode_bare(self, sentences: Sequence[Sequence[str]], max_pieces: int = MAX_BATCH_PIECES) -> None:
        """Run the encoder alone, without spans and labels; for benchmarks."""
        rows_of = [[row] for row in self.pieces.rows(sentences)]
        for numbers in _groups(rows_of, max_pieces):
            self._run("hidden", [row for number in numbers for row in rows_of[number]], *_SPAN)

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
        width = max(len(row.ids) for row in rows)
        pieces = np.full((len(rows), width), self.pieces.padding_id, np.int64)
        mask = np.zeros((len(rows), width), np.bool_)
        first: list[npt.NDArray[np.int64]] = []
        last: list[npt.NDArray[np.int64]] = []
        for number, row in enumerate(rows):
            pieces[number, : len(row.ids)] = row.ids
            mask[number, : len(row.ids)] = True
            first.append(np.array(row.first, np.int64) + number * width)
            last.append(np.array(row.last, np.int64) + number * width)
        inputs = {
            "pieces": pieces,
            "mask": mask,
            "first": np.concatenate(first),
            "last": np.concatenate(last),
            "starts": np.ascontiguousarray(starts),
            "ends": np.ascontiguousarray(ends),
        }
        return self._spans.run([output], inputs)[0]


def _groups(rows_of: Sequence[Sequence[Row]], max_pieces: int) -> Iterable[list[int]]:
    """Group sentences of like length; one that is read in several windows is a group of its own."""
    short = [number for number, rows in enumerate(rows_of) if len(rows) == 1]
    for group in batches([len(rows_of[number][0].ids) for number in short], max_pieces):
        yield [short[at] for at in group]
    yield from ([number] for number, rows in enumerate(rows_of) if len(rows) > 1)
