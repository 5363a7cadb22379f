"""The likelihood of a tag sequence under a linear chain: what a CRF is trained by. Needs torch, for gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from spanshot.decode.transitions import Transitions


def log_likelihood(emissions: Tensor, gold: Tensor, mask: Tensor, transitions: Transitions) -> Tensor:
    """Log probability of the gold tags of each sentence. [n]

    ``emissions`` [n, words, tags] and ``gold`` [n, words] are padded at the end, as ``mask`` [n, words] says; every
    sentence has a word at least.
    """
    score = transitions.start + emissions[:, 0]  # [n, tags]: of all paths so far that end in the tag
    path = _pick(score, gold[:, 0])
    last = gold[:, 0]
    for at in range(1, emissions.shape[1]):
        on, word, tag = mask[:, at], emissions[:, at], gold[:, at]
        reached = torch.logsumexp(score[:, :, None] + transitions.step, dim=1) + word
        score = torch.where(on[:, None], reached, score)
        path = path + torch.where(on, transitions.step[last, tag] + _pick(word, tag), 0.0)
        last = torch.where(on, tag, last)
    found: Tensor = path + transitions.end[last] - torch.logsumexp(score + transitions.end, dim=1)
    return found


def _pick(scores: Tensor, tags: Tensor) -> Tensor:
    return scores.gather(1, tags[:, None]).squeeze(1)
