"""MN+BERT: all words of the support set vote for a word's tag, weighted by similarity.

Vinyals et al., "Matching Networks for One Shot Learning", NeurIPS 2016, on BERT's words as in Hou et al. 2020.

A query word attends to all support words by dot product. The probability of a tag is the sum of the attention to its
words, so tags with many words (O) get more.
"""

from __future__ import annotations

from torch import Tensor
from typing_extensions import override

from spanshot.research.learning.tokens import Nearness, TokenMethod, TokenSettings
from spanshot.research.nn.groups import Groups


class Matching(TokenMethod):
    """A matching network over words.

    Departures: dot products are divided by a temperature; tags are IO unless set otherwise.
    """

    name = "matching"
    Settings = TokenSettings

    @override
    def nearness(self, words: Tensor, support: Groups) -> Nearness:
        similarities = words @ support.vectors.T / self.temperature  # [words, support words]
        return Nearness([similarities[:, rows].logsumexp(1) for rows in support.rows if rows.stop > rows.start])
