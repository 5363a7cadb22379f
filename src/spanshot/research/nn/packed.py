"""Run a BERT transformer over rows of different lengths without padding, except inside attention.

Training encodes the sentences of an episode in one pass, or a pool of sentences and label names. Padded batches would
spend a quarter of the time on padding and add up the gradients of all weights once per batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertModel

from spanshot.research.nn.onednn import can_use_onednn, linear, rounded_up

LEAST_FILLED = 0.8  # share of real pieces in a padded batch of attention
MOST_PIECES = 4096  # in a padded batch of attention


@dataclass(frozen=True, slots=True)
class _AttentionBatch:
    """Rows of like length that attention reads together."""

    places: Tensor  # [rows, width]: positions in the packed pieces, 0 where padded
    mask: Tensor | None  # [rows, 1, 1, width]; None where nothing is padded
    real: Tensor  # [real pieces]: positions in the flattened rows
    order: Tensor  # [real pieces]: positions in the packed pieces


def can_be_packed(transformer: nn.Module) -> bool:
    """Whether `packed_vectors` can run this transformer."""
    return isinstance(transformer, BertModel)


def packed_vectors(
    transformer: nn.Module, ids: Tensor, lengths: Sequence[int], segments: Tensor | None = None
) -> Tensor:
    """Return the vectors of all pieces, row after row: the same as in padded batches. [all pieces, size]

    ``ids`` has the pieces of all rows, ``lengths`` their number in each row. ``segments`` are token types (default: 0).
    """
    assert isinstance(transformer, BertModel)
    device = ids.device
    positions = torch.cat([torch.arange(length) for length in lengths]).to(device)
    pieces = len(ids)
    if can_use_onednn(transformer.embeddings.word_embeddings.weight):
        blanks = rounded_up(pieces) - pieces
        ids, positions = F.pad(ids, (0, blanks)), F.pad(positions, (0, blanks))
        segments = segments if segments is None else F.pad(segments, (0, blanks))
    batches = [_moved(batch, device) for batch in _attention_batches(lengths)]
    back = torch.cat([batch.order for batch in batches]).argsort()
    parts = transformer.embeddings
    token_types = parts.token_type_embeddings.weight[0 if segments is None else segments]
    summed = parts.word_embeddings(ids) + parts.position_embeddings(positions) + token_types
    hidden: Tensor = parts.dropout(parts.LayerNorm(summed))  # [pieces and blanks, size]
    for layer in transformer.encoder.layer:
        attention = layer.attention.self
        projected = [linear(part, hidden) for part in (attention.query, attention.key, attention.value)]
        dropout = attention.dropout.p if transformer.training else 0.0
        mixed = _attend(projected, batches, attention.num_attention_heads, dropout).index_select(0, back)
        mixed = F.pad(mixed, (0, 0, 0, len(hidden) - pieces))
        out = layer.attention.output
        hidden = out.LayerNorm(out.dropout(linear(out.dense, mixed)) + hidden)
        widened = layer.intermediate.intermediate_act_fn(linear(layer.intermediate.dense, hidden))
        feed = layer.output
        hidden = feed.LayerNorm(feed.dropout(linear(feed.dense, widened)) + hidden)
    return hidden[:pieces]


def _attend(projected: Sequence[Tensor], batches: Sequence[_AttentionBatch], heads: int, dropout: float) -> Tensor:
    """Return the attention of all rows, batch after batch. [all pieces, size]"""
    outputs = []
    for batch in batches:
        rows, width = batch.places.shape
        query, key, value = (
            part.index_select(0, batch.places.flatten()).view(rows, width, heads, -1).transpose(1, 2)
            for part in projected
        )
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=batch.mask, dropout_p=dropout)
        flat = mixed.transpose(1, 2).reshape(rows * width, -1)
        outputs.append(flat if batch.mask is None else flat.index_select(0, batch.real))
    return torch.cat(outputs)


def _attention_batches(lengths: Sequence[int]) -> list[_AttentionBatch]:
    """Group rows of like length, longest first."""
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    groups: list[list[int]] = []
    width = real = 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        count = len(groups[-1]) + 1 if groups else 1
        padded = width * count
        if not groups or real + lengths[row] < LEAST_FILLED * padded or padded > MOST_PIECES:
            groups.append([])
            width, real = lengths[row], 0
        groups[-1].append(row)
        real += lengths[row]
    return [_batch([starts[row] for row in group], [lengths[row] for row in group]) for group in groups]


def _batch(starts: Sequence[int], lengths: Sequence[int]) -> _AttentionBatch:
    column = torch.arange(max(lengths))
    inside = column < torch.tensor(lengths)[:, None]  # [rows, width]
    places = torch.where(inside, torch.tensor(starts)[:, None] + column, 0)
    mask = None if bool(inside.all()) else inside[:, None, None, :]
    real = inside.flatten().nonzero().squeeze(1)
    return _AttentionBatch(places, mask, real, places.flatten()[real])


def _moved(batch: _AttentionBatch, device: torch.device) -> _AttentionBatch:
    mask = None if batch.mask is None else batch.mask.to(device)
    return _AttentionBatch(batch.places.to(device), mask, batch.real.to(device), batch.order.to(device))
