"""The likelihood of a tag sequence under a linear chain: what a CRF is trained by. Needs torch, for gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from spanshot.decode.decoders import LOWEST
from spanshot.decode.transitions import Transitions


def chain_loss(emissions: Tensor, gold: Sequence[Sequence[int]], transitions: Transitions) -> Tensor:
    """Negative log-likelihood per word of the gold tags of each sentence, and then its mean over sentences.

    ``emissions`` [n, most words, tags] are padded at the end. Sentences with a tag that has no score at all (-inf) are
    left out.
    """
    device = emissions.device
    sizes = torch.tensor([len(tags) for tags in gold], device=device)
    target = pad_sequence([torch.tensor(tags, device=device) for tags in gold], batch_first=True)  # [n, most words]
    mask = torch.arange(target.shape[1], device=device) < sizes[:, None]
    likelihood = log_likelihood(emissions.clamp_min(LOWEST), target, mask, transitions)
    scoreless = (emissions.gather(2, target[..., None]).squeeze(2) == -torch.inf) & mask
    return -(likelihood / sizes).where(~scoreless.any(1), 0.0).mean()


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
