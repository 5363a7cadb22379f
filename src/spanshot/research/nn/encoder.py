"""Words to vectors. The only place that pads sentences for the transformer and masks the padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from spanshot.research.nn.pieces import Pieces, Row
from spanshot.types import Sentence

PADDED_PIECES_AT_ONCE = 4096
LEAST_FILLED = 0.75


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The words of several sentences, one after another, by their first and by their last piece."""

    first: Tensor  # [all words, size]
    last: Tensor  # [all words, size]
    lengths: tuple[int, ...]

    def split(self, sentences: int) -> tuple[WordVectors, WordVectors]:
        """Those of the first so many sentences, and those of the others."""
        words = sum(self.lengths[:sentences])
        return (
            WordVectors(self.first[:words], self.last[:words], self.lengths[:sentences]),
            WordVectors(self.first[words:], self.last[words:], self.lengths[sentences:]),
        )


class Encoder(nn.Module):
    """A pretrained transformer that reads words and gives each a vector.

    Sentences are sorted by length and read in groups with little padding; the padding is masked, so a word's
    vector does not depend on what else is read with it.
    """

    word_dropout: float = 0.0
    """While training, the chance that a word is hidden: all of its pieces are masked."""

    def __init__(self, transformer: nn.Module, pieces: Pieces, *, freeze_embeddings: bool = False) -> None:
        super().__init__()
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
        """Where the weights lie."""
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

        ``breaks`` and ``segment_ids`` are for :meth:`pairs`: the number of words of each pair's first sentence, and
        whether to mark the second.
        """
        lengths = tuple(len(sentence) for sentence in sentences)
        offsets = [0]
        for length in lengths:
            offsets.append(offsets[-1] + length)
        first: list[Tensor] = []
        last: list[Tensor] = []
        positions: list[int] = []
        for group in _groups_of_like_length(self.pieces.rows([sentence.words for sentence in sentences], breaks)):
            width = max(len(row.ids) for row in group)
            starts = _flat((row.first for row in group), width, self.device)
            ends = _flat((row.last for row in group), width, self.device)
            hidden = self._read(group, width, starts, ends, segment_ids)  # [rows * width, size]
            first.append(hidden[starts])
            last.append(hidden[ends])
            positions.extend(offsets[row.sentence] + word for row in group for word in row.words)
        order = torch.empty(len(positions), dtype=torch.long)
        order[torch.tensor(positions)] = torch.arange(len(positions))
        order = order.to(self.device)
        return WordVectors(torch.cat(first)[order], torch.cat(last)[order], lengths)

    def _read(self, rows: Sequence[Row], width: int, starts: Tensor, ends: Tensor, segment_ids: bool) -> Tensor:
        pad = self.pieces.padding_id
        ids = torch.tensor([row.ids + (pad,) * (width - len(row.ids)) for row in rows], device=self.device)
        sizes = torch.tensor([len(row.ids) for row in rows], device=self.device)
        mask = (torch.arange(width, device=self.device) < sizes[:, None]).long()  # [rows, width]
        if self.training and self.word_dropout:
            ids = ids.masked_fill(self._some_words(starts, ends, ids.numel()).view_as(ids), self.pieces.mask_id)
        segments = {}
        if segment_ids and self.segments > 1:
            second = torch.tensor([row.second for row in rows], device=self.device)
            segments["token_type_ids"] = mask * (torch.arange(width, device=self.device) >= second[:, None])
        hidden: Tensor = self.transformer(input_ids=ids, attention_mask=mask, **segments).last_hidden_state
        return hidden.flatten(0, 1)

    def _some_words(self, starts: Tensor, ends: Tensor, places: int) -> Tensor:
        """Which of so many places belong to words drawn at random, whose first and last pieces are given. [places]"""
        drawn = torch.rand(len(starts), device=starts.device) < self.word_dropout
        steps = torch.zeros(places + 1, dtype=torch.long, device=starts.device)
        steps[starts[drawn]] += 1
        steps[ends[drawn] + 1] -= 1
        return steps.cumsum(0)[:-1] > 0


def _flat(positions: Iterator[tuple[int, ...]], width: int, device: torch.device) -> Tensor:
    """Positions within each row as positions in the flattened rows."""
    flat = chain.from_iterable((width * row + at for at in own) for row, own in enumerate(positions))
    return torch.tensor(list(flat), dtype=torch.long, device=device)


def _groups_of_like_length(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Longest first; a group ends where its padding would waste time or its size memory."""
    group: list[Row] = []
    for row in sorted(rows, key=lambda row: len(row.ids), reverse=True):
        if group:
            width = len(group[0].ids)
            too_empty = len(row.ids) < LEAST_FILLED * width and len(group) * width >= 256
            if too_empty or (len(group) + 1) * width > PADDED_PIECES_AT_ONCE:
                yield group
                group = []
        group.append(row)
    if group:
        yield group
