"""Words to vectors, in torch. The only place on this floor that pads sentences and masks the padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn

from spanshot.engine.pieces import Pieces, Row
from spanshot.research.nn.forks import allow_forks
from spanshot.research.nn.onednn import can_use_onednn
from spanshot.research.nn.packed import can_be_packed, packed_vectors
from spanshot.types import Sentence
from spanshot.words import batches


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The vectors of the words of several sentences, one after another: of their first and of their last piece."""

    first: Tensor  # [all words, size]
    last: Tensor  # [all words, size]
    lengths: tuple[int, ...]

    def take(self, numbers: Sequence[int]) -> WordVectors:
        """Return the vectors of the sentences with these numbers, in this order."""
        ends = list(accumulate(self.lengths))
        words = [word for n in numbers for word in range(ends[n] - self.lengths[n], ends[n])]
        at = torch.tensor(words, device=self.first.device)
        return WordVectors(self.first[at], self.last[at], tuple(self.lengths[n] for n in numbers))

    def split(self, sentences: int) -> tuple[WordVectors, WordVectors]:
        """Return the vectors of the first ``sentences`` sentences, and those of the others."""
        words = sum(self.lengths[:sentences])
        return (
            WordVectors(self.first[:words], self.last[:words], self.lengths[:sentences]),
            WordVectors(self.first[words:], self.last[words:], self.lengths[sentences:]),
        )

    def batches(self, max_words: int) -> Iterator[tuple[list[int], WordVectors]]:
        """Yield batches of at most ``max_words`` words, padding included: numbers of sentences, and their vectors."""
        for numbers in batches(self.lengths, max_words):
            yield numbers, self.take(numbers)


class Encoder(nn.Module):
    """A pretrained transformer that gives each word a vector.

    Sentences are read in batches of like length. Padding is masked, so the vector of a word does not depend on the
    other sentences of its batch.
    """

    word_dropout: float = 0.0
    """Probability that a word is hidden while training: all of its pieces are masked."""
    max_batch_pieces: int = 4096
    """Maximum number of pieces in a batch, padding included."""
    compute_dtype: torch.dtype = torch.float32
    """Type that the transformer computes in; its weights and results are always in single precision."""

    def __init__(self, transformer: nn.Module, pieces: Pieces, *, freeze_embeddings: bool = False) -> None:
        super().__init__()
        allow_forks()
        if hasattr(transformer, "pooler"):
            transformer.pooler = None  # type: ignore[assignment]
        self.transformer = transformer
        self.pieces = pieces
        self.size = int(transformer.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.segments = int(getattr(transformer.config, "type_vocab_size", 0))
        if freeze_embeddings:
            transformer.get_input_embeddings().requires_grad_(False)  # type: ignore[operator]

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def pairs(self, pairs: Sequence[tuple[Sentence, Sentence]], *, segment_ids: bool = True) -> WordVectors:
        """Encode each pair as one sequence: the words of the first sentence, then those of the second.

        ``segment_ids`` marks the second sentence for encoders that have segment embeddings, as BERT was pretrained.
        """
        joined = [Sentence((*first.words, *second.words)) for first, second in pairs]
        words: WordVectors = self(joined, [len(first) for first, _ in pairs], segment_ids=segment_ids)
        return words

    def forward(
        self, sentences: Sequence[Sentence], breaks: Sequence[int] = (), *, segment_ids: bool = False
    ) -> WordVectors:
        """Encode the words of the sentences and ignore their spans.

        ``breaks`` and ``segment_ids`` are for `pairs`: the number of words of each pair's first sentence, and
        whether to mark the second.
        """
        lengths = tuple(len(sentence.words) for sentence in sentences)
        rows = self.pieces.rows([sentence.words for sentence in sentences], breaks)
        if can_be_packed(self.transformer) and (self.training or can_use_onednn(next(self.parameters()))):
            return self._packed(rows, lengths, segment_ids=segment_ids)[0]
        offsets = [0, *accumulate(lengths)]
        device = next(self.parameters()).device
        first: list[Tensor] = []
        last: list[Tensor] = []
        positions: list[int] = []
        for group, ids, mask in self._padded(rows):
            width = ids.shape[1]
            starts = torch.tensor([width * n + at for n, row in enumerate(group) for at in row.first], device=device)
            ends = torch.tensor([width * n + at for n, row in enumerate(group) for at in row.last], device=device)
            segments = {}
            if segment_ids and self.segments > 1:
                second = torch.tensor([row.second for row in group])
                segments["token_type_ids"] = (mask * (torch.arange(width) >= second[:, None])).to(device)
            ids, mask = ids.to(device), mask.to(device)
            if self.training and self.word_dropout:
                hidden_words = self._random_words(starts, ends, ids.numel()).view_as(ids)
                ids = ids.masked_fill(hidden_words, self.pieces.mask_id)
            with self._autocast():
                hidden = self.transformer(input_ids=ids, attention_mask=mask, **segments).last_hidden_state
            vectors = hidden.float().flatten(0, 1)
            first.append(vectors[starts])  # [words of the batch, size]
            last.append(vectors[ends])
            positions.extend(offsets[row.sentence] + word for row in group for word in row.words)
        order = torch.empty(len(positions), dtype=torch.long)
        order[torch.tensor(positions)] = torch.arange(len(positions))
        order = order.to(device)
        return WordVectors(torch.cat(first)[order], torch.cat(last)[order], lengths)

    def means(self, sentences: Sequence[Sentence]) -> Tensor:
        """Return the mean vector of all pieces of each sentence, those around it included. [sentences, size]"""
        device = next(self.parameters()).device
        rows = self.pieces.rows([sentence.words for sentence in sentences])
        sums: list[Tensor] = []
        owners: list[int] = []
        for group, ids, mask in self._padded(rows):
            ids, mask = ids.to(device), mask.to(device)
            with self._autocast():
                vectors = self.transformer(input_ids=ids, attention_mask=mask).last_hidden_state  # [rows, width, size]
            sums.append((vectors.float() * mask.unsqueeze(2)).sum(1))
            owners += [row.sentence for row in group]
        pieces = torch.zeros(len(sentences))
        for row in rows:
            pieces[row.sentence] += len(row.ids)
        total = sums[0].new_zeros(len(sentences), self.size)
        total = total.index_add(0, torch.tensor(owners, device=device), torch.cat(sums))
        return total / pieces.to(device).unsqueeze(1)

    def without_padding(
        self, sentences: Sequence[Sentence], names: Sequence[Sentence] = ()
    ) -> tuple[WordVectors, Tensor]:
        """Encode sentences as `forward` does and names as `means` does, in one pass without padding, for training."""
        if not can_be_packed(self.transformer):
            words: WordVectors = self(sentences)
            return words, self.means(names) if names else words.first.new_zeros(0, self.size)
        rows = self.pieces.rows([sentence.words for sentence in (*sentences, *names)])
        words, vectors = self._packed(rows, tuple(len(sentence.words) for sentence in sentences))
        owners = [row.sentence - len(sentences) for row in rows for _ in row.ids if row.sentence >= len(sentences)]
        owner = torch.tensor(owners, dtype=torch.long, device=vectors.device)
        pieces = torch.bincount(owner, minlength=len(names)).unsqueeze(1)
        sums = vectors.new_zeros(len(names), self.size).index_add(0, owner, vectors[len(vectors) - len(owners) :])
        return words, sums / pieces

    def _packed(
        self, rows: Sequence[Row], lengths: tuple[int, ...], *, segment_ids: bool = False
    ) -> tuple[WordVectors, Tensor]:
        """Encode rows without padding. Return the vectors of the words of the first sentences and of all pieces.

        ``lengths`` are the numbers of words of these sentences. [all pieces, size]
        """
        device = next(self.parameters()).device
        sizes = [len(row.ids) for row in rows]
        first, last = [], []  # windows of a long sentence follow one another, so its words are in order
        for row, start in zip(rows, [0, *accumulate(sizes)], strict=False):
            if row.sentence < len(lengths):
                first += [start + place for place in row.first]
                last += [start + place for place in row.last]
        starts, ends = (torch.tensor(places, dtype=torch.long, device=device) for places in (first, last))
        ids = torch.tensor([piece for row in rows for piece in row.ids], device=device)
        if self.training and self.word_dropout:
            ids = ids.masked_fill(self._random_words(starts, ends, len(ids)), self.pieces.mask_id)
        segments = None
        if segment_ids and self.segments > 1:
            second = [int(place >= row.second) for row in rows for place in range(len(row.ids))]
            segments = torch.tensor(second, device=device)
        with self._autocast():
            vectors = self._packed_vectors(ids, sizes, segments)
        vectors = vectors.float()
        lookup = nn.functional.embedding  # the gradient of an index is slower
        return WordVectors(lookup(starts, vectors), lookup(ends, vectors), lengths), vectors

    def _packed_vectors(self, ids: Tensor, sizes: Sequence[int], segments: Tensor | None) -> Tensor:
        """Return the vectors of the pieces of rows with these sizes; outside training, in parts of limited memory."""
        if self.training:
            return packed_vectors(self.transformer, ids, sizes, segments)
        parts: list[list[int]] = [[]]
        for size in sizes:
            if parts[-1] and sum(parts[-1]) + size > self.max_batch_pieces:
                parts.append([])
            parts[-1].append(size)
        pieces = [sum(part) for part in parts]
        of_parts = [None] * len(parts) if segments is None else torch.split(segments, pieces)
        inputs = zip(torch.split(ids, pieces), parts, of_parts, strict=True)
        return torch.cat([packed_vectors(self.transformer, *part) for part in inputs])

    def _autocast(self) -> AbstractContextManager[object]:
        if self.compute_dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, self.compute_dtype)

    def _padded(self, rows: Sequence[Row]) -> Iterator[tuple[list[Row], Tensor, Tensor]]:
        """Yield rows of like length, their ids padded to the longest, and which ids are no padding. [rows, width]"""
        for numbers in batches([len(row.ids) for row in rows], self.max_batch_pieces):
            group = [rows[number] for number in numbers]
            width = len(group[0].ids)
            ids = torch.tensor([row.ids + (self.pieces.padding_id,) * (width - len(row.ids)) for row in group])
            sizes = torch.tensor([len(row.ids) for row in group])
            yield group, ids, (torch.arange(width) < sizes[:, None]).long()

    def _random_words(self, starts: Tensor, ends: Tensor, places: int) -> Tensor:
        """Return which places belong to words drawn at random. The words' first and last pieces are given. [places]"""
        drawn = torch.rand(len(starts), device=starts.device) < self.word_dropout
        steps = torch.zeros(places + 1, dtype=torch.long, device=starts.device)
        steps[starts[drawn]] += 1
        steps[ends[drawn] + 1] -= 1
        return steps.cumsum(0)[:-1] > 0


@contextmanager
def computing_in(module: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Let the encoders of a module compute in ``dtype`` inside the block. All else stays in single precision."""
    encoders = [part for part in module.modules() if isinstance(part, Encoder)]
    for encoder in encoders:
        encoder.compute_dtype = dtype
    try:
        yield
    finally:
        for encoder in encoders:
            encoder.compute_dtype = torch.float32
