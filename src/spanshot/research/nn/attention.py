"""The attention over spans that ESD's enhancing modules share."""

from __future__ import annotations

from torch import Tensor, nn


class SpanAttention(nn.Module):
    """Spans gather from other spans: projected attention, then a GELU network, each with residual and norm."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.gathered_norm = nn.LayerNorm(size)
        self.feed = nn.Sequential(nn.Linear(size, size), nn.GELU(), nn.Dropout(dropout), nn.Linear(size, size))
        self.norm = nn.LayerNorm(size)

    def forward(self, spans: Tensor, others: Tensor, mask: Tensor | None = None) -> Tensor:
        """``spans`` [n, a, size] attend to ``others`` [n, b, size], of which ``mask`` [n, b] says which exist.

        Either may have an n of 1: it then stands for all, and is projected only once.
        """
        n = max(len(spans), len(others))
        query, key, value = (
            projected.expand(n, -1, -1) for projected in (self.query(spans), self.key(others), self.value(others))
        )
        gathered = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=None if mask is None else mask[:, None, :]
        )  # [n, a, size]
        spans = self.gathered_norm(spans + gathered)
        enhanced: Tensor = self.norm(spans + self.feed(spans))
        return enhanced
