"""Attention over spans, as in ESD's enhancing modules: three variants with the same interface."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class SpanAttention(nn.Module):
    """Projected attention, then a GELU network, each with a residual connection and layer normalization.

    ``released`` adds what the authors of ESD have in their code: an output projection and dropout on the output of the
    network, whose hidden layer they make four times as wide (``feed_width``).
    """

    def __init__(self, size: int, dropout: float, *, feed_width: int = 1, released: bool = False) -> None:
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.output = nn.Linear(size, size) if released else nn.Identity()
        self.gathered_norm = nn.LayerNorm(size)
        self.feed = _feed_forward(size, feed_width, dropout)
        self.feed_dropout = nn.Dropout(dropout if released else 0.0)
        self.norm = nn.LayerNorm(size)

    def forward(self, spans: Tensor, others: Tensor, mask: Tensor | None = None) -> Tensor:
        """Let ``spans`` [n, a, size] attend to ``others`` [n, b, size]; ``mask`` [n, b] is true where a span exists.

        Either may have n = 1, which stands for all and is projected only once.
        """
        n = max(len(spans), len(others))
        query, key, value = (
            projected.expand(n, -1, -1) for projected in (self.query(spans), self.key(others), self.value(others))
        )
        gathered = scaled_dot_product_attention(query, key, value, attn_mask=_over_keys(mask))  # [n, a, size]
        spans = self.gathered_norm(spans + self.output(gathered))
        enhanced: Tensor = self.norm(spans + self.feed_dropout(self.feed(spans)))
        return enhanced


class PlainSpanAttention(nn.Module):
    """Attention exactly as ESD's paper writes it: ``LayerNorm(s + FFN(softmax(s Sᵀ) S))``, without projections."""

    def __init__(self, size: int, dropout: float, *, feed_width: int = 1, scaled: bool = False) -> None:
        super().__init__()
        self.scale = size**-0.5 if scaled else 1.0
        self.feed = _feed_forward(size, feed_width, dropout)
        self.norm = nn.LayerNorm(size)

    def forward(self, spans: Tensor, others: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend as :meth:`SpanAttention.forward` does."""
        n = max(len(spans), len(others))
        query, key = (part.expand(n, -1, -1) for part in (spans, others))
        gathered = scaled_dot_product_attention(query, key, key, attn_mask=_over_keys(mask), scale=self.scale)
        enhanced: Tensor = self.norm(spans + self.feed(gathered))
        return enhanced


def _feed_forward(size: int, width: int, dropout: float) -> nn.Sequential:
    hidden = width * size
    return nn.Sequential(nn.Linear(size, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, size))


def _over_keys(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask[:, None, :]
