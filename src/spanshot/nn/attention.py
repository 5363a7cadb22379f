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
        self.dropout = nn.Dropout(dropout)

    def forward(self, spans: Tensor, others: Tensor, mask: Tensor | None = None) -> Tensor:
        """``spans`` [n, a, size] attend to ``others`` [n, b, size], of which ``mask`` [n, b] says which exist."""
        gathered = nn.functional.scaled_dot_product_attention(
            self.query(spans),
            self.key(others),
            self.value(others),
            attn_mask=None if mask is None else mask[:, None, :],
        )  # [n, a, size]
        spans = self.gathered_norm(spans + self.dropout(gathered))
        enhanced: Tensor = self.norm(spans + self.dropout(self.feed(spans)))
        return enhanced
