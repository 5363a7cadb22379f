"""MN+BERT: a word's tag is voted for by all words of the support, the more the nearer they are.

Vinyals et al., "Matching Networks for One Shot Learning", NeurIPS 2016, on BERT's words as in Hou et al. 2020.

A word attends to all words of the support by dot product; a tag's probability is the attention that its
words get together, so tags with many words (O) draw more of it. Departures: dot products are divided by a
temperature; tags are IO unless set otherwise.
"""

from __future__ import annotations

from torch import Tensor

from spanshot.research.learning.tokens import Nearness, TokenMethod, TokenSettings
from spanshot.research.nn.groups import Groups


class Matching(TokenMethod):
    """A matching network over words."""

    name = "matching"
    Settings = TokenSettings

    def nearness(self, words: Tensor, support: Groups) -> Nearness:  # noqa: D102
        alike = words @ support.vectors.T / self.temperature  # [words, support words]
        return Nearness([alike[:, rows].logsumexp(1) for rows in support.rows if rows.stop > rows.start])
