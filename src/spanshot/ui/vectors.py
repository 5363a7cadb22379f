"""Span vectors of the texts of a project, kept in half precision: a correction refits the head and encodes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanshot.engine.encoder import MAX_BATCH_PIECES, SpanEncoder
from spanshot.engine.spans import Bounds, SpanVectors, candidates
from spanshot.heads.linear import Prior

Words = tuple[str, ...]
Halves = npt.NDArray[np.float16]
BLOCK = 128
"""Sentences that are encoded, kept and scored together."""
ROOM = 2_000_000_000
"""Most bytes of vectors: about 20,000 sentences of 20 words. Sentences beyond are encoded when they are shown."""


@dataclass(frozen=True, slots=True)
class Block:
    """The vectors of some sentences, one after the other."""

    sentences: tuple[Words, ...]
    vectors: Halves  # [rows, size]
    bounds: Bounds  # [rows, 2]
    starts: npt.NDArray[np.int64]  # [sentences + 1]: first row of each

    def rows(self, at: int) -> slice:
        """Return the rows of a sentence."""
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    def spans(self, rows: slice | npt.NDArray[np.int64]) -> SpanVectors:
        """Return the spans and vectors at some rows."""
        return SpanVectors(self.bounds[rows], self.vectors[rows].astype(np.float32))


class VectorStore(SpanEncoder):
    """An encoder that keeps the vectors of a project's sentences. It can take the place of the model's encoder."""

    def __init__(self, encoder: SpanEncoder, room: int = ROOM) -> None:
        self._encoder = encoder
        self._room = room
        self.widths: tuple[int, ...] = ()
        self.blocks: list[Block] = []
        self._places: dict[Words, tuple[Block, int]] = {}

    @property
    def size(self) -> int:
        """The bytes of the vectors."""
        return sum(block.vectors.nbytes + block.bounds.nbytes for block in self.blocks)

    def __contains__(self, words: Words) -> bool:
        return words in self._places

    def set_widths(self, widths: tuple[int, ...]) -> None:
        """Set the widths of candidate spans. All vectors are forgotten if they change."""
        if widths != self.widths:
            self.widths = widths
            self.blocks, self._places = [], {}

    def add(self, sentences: Sequence[Words]) -> Block:
        """Encode sentences, and keep their vectors if there is room."""
        bounds = [candidates(len(words), self.widths) for words in sentences]
        vectors: list[Halves] = [np.zeros((0, 0), np.float16) for _ in sentences]
        for number, spans in self._encoder.encode(sentences, bounds):
            vectors[number] = spans.vectors.astype(np.float16)
        starts = np.cumsum([0, *map(len, bounds)])
        block = Block(tuple(sentences), np.concatenate(vectors), np.concatenate(bounds), starts)
        if self.size < self._room:
            self.blocks.append(block)
            self._places.update({words: (block, at) for at, words in enumerate(sentences)})
        return block

    def place(self, words: Words) -> tuple[Block, int]:
        """Return the block of a sentence whose vectors are kept, and its position there."""
        return self._places[words]

    def encode(
        self, sentences: Sequence[Sequence[str]], bounds: Sequence[Bounds], max_pieces: int = MAX_BATCH_PIECES
    ) -> Iterator[tuple[int, SpanVectors]]:
        """Yield the number of each sentence and the vectors of its spans."""
        unknown = []
        for number, (words, wanted) in enumerate(zip(sentences, bounds, strict=True)):
            spans = self._kept(tuple(words), wanted)
            if spans is None:
                unknown.append(number)
            else:
                yield number, spans
        rest, rest_bounds = [sentences[number] for number in unknown], [bounds[number] for number in unknown]
        for at, spans in self._encoder.encode(rest, rest_bounds, max_pieces):
            # The same precision whether or not a sentence was kept.
            yield unknown[at], SpanVectors(spans.bounds, spans.vectors.astype(np.float16).astype(np.float32))

    def encode_names(self, names: Sequence[str]) -> Prior:
        """Return the prior of each label."""
        return self._encoder.encode_names(names)

    def _kept(self, words: Words, wanted: Bounds) -> SpanVectors | None:
        if words not in self:
            return None
        block, at = self.place(words)
        return block.spans(block.rows(at)).of(wanted)
