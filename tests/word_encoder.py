"""A model of the engine without weights: vectors of words are random but fixed. For fast tests of all that follows."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from spanshot.engine.encoder import MAX_BATCH_PIECES, SpanEncoder
from spanshot.engine.files import EngineSettings
from spanshot.engine.spans import Bounds, SpanVectors
from spanshot.heads.linear import Prior
from spanshot.heads.settings import HeadSettings, ScoreSettings
from spanshot.learner import LinearLearner
from spanshot.model import Model

SIZE = 24


class WordEncoder(SpanEncoder):
    """A span is its first and last word, the word before it, and its width; a name is its words."""

    def __init__(self) -> None:
        self.encoded: list[tuple[str, ...]] = []
        """The sentences that were encoded."""

    def encode(
        self, sentences: Sequence[Sequence[str]], bounds: Sequence[Bounds], max_pieces: int = MAX_BATCH_PIECES
    ) -> Iterator[tuple[int, SpanVectors]]:
        del max_pieces
        for number, (words, spans) in enumerate(zip(sentences, bounds, strict=True)):
            self.encoded.append(tuple(words))
            known = np.stack([_vector("^"), *map(_vector, words)])
            sums = known[spans[:, 0] + 1] + 0.8 * known[spans[:, 1]] + 0.5 * known[spans[:, 0]]
            sums += 0.3 * np.stack([_vector(f"width {width}") for width in (spans[:, 1] - spans[:, 0]).tolist()])
            yield number, SpanVectors(spans, sums / np.linalg.norm(sums, axis=1, keepdims=True))

    def encode_names(self, names: Sequence[str]) -> Prior:
        weights = [np.mean([_vector(word) for word in name.split() or ["?"]], 0) for name in names]
        return Prior(np.stack(weights), np.full(len(names), -1.0, np.float32), tuple(bool(name) for name in names))


def word_model() -> Model:
    """A new model on word vectors."""
    settings = EngineSettings(
        head=HeadSettings(shrink_named=0.1, shrink_nameless=0.1, slope=0.8, shift=0.1, match=0.7),
        scores=ScoreSettings(threshold=-0.5),
    )
    return Model(LinearLearner(WordEncoder(), settings, "0" * 64, dict))


def _vector(word: str) -> np.ndarray:
    values = np.random.default_rng(zlib.crc32(word.casefold().encode())).normal(size=SIZE)
    return (values / np.linalg.norm(values)).astype(np.float32)
