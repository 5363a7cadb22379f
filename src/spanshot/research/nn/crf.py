"""A linear-chain CRF as a training loss: learned transitions, and the likelihood of tag sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from spanshot.decode.decoders import LOWEST
from spanshot.decode.transitions import Transitions, kinds_of_steps


@dataclass(frozen=True, slots=True)
class ChainLogits:
    """Learned scores of starting with a tag, of each step between two tags, and of ending with a tag."""

    start: Tensor  # [tags]
    step: Tensor  # [tags, tags]: from, to
    end: Tensor  # [tags]

    @classmethod
    def of_kinds(cls, values: Tensor, tags: Sequence[str], scheme: str) -> ChainLogits:
        """Expand the scores of kinds of steps [kinds] to steps between these tags."""
        start, step, end = kinds_of_steps(tuple(tags), scheme)
        return cls(values[start], values[step], values[end])

    def transitions(self) -> Transitions:
        """Return the scores as arrays, for decoding."""
        start, step, end = (part.detach().double().cpu().numpy() for part in (self.start, self.step, self.end))
        return Transitions(start, step, end)


def chain_loss(emissions: Tensor, gold: Sequence[Sequence[int]], transitions: ChainLogits) -> Tensor:
    """Return the negative log-likelihood per word of the gold tags, averaged over sentences.

    ``emissions`` [n, most words, tags] are padded at the end. Sentences with a gold tag that has no score (-inf) are
    ignored.
    """
    device = emissions.device
    sizes = torch.tensor([len(tags) for tags in gold], device=device)
    target = pad_sequence([torch.tensor(tags, device=device) for tags in gold], batch_first=True)  # [n, most words]
    mask = torch.arange(target.shape[1], device=device) < sizes[:, None]
    likelihood = log_likelihood(emissions.clamp_min(LOWEST), target, mask, transitions)
    scoreless = (emissions.gather(2, target[..., None]).squeeze(2) == -torch.inf) & mask
    return -(likelihood / sizes).where(~scoreless.any(1), 0.0).mean()


def log_likelihood(emissions: Tensor, gold: Tensor, mask: Tensor, transitions: ChainLogits) -> Tensor:
    """Return the log-probability of the gold tags of each sentence. [n]

    ``emissions`` [n, words, tags] and ``gold`` [n, words] are padded at the end; ``mask`` [n, words] is true for words.
    Every sentence has at least one word.
    """
    score = transitions.start + emissions[:, 0]  # [n, tags]: of all paths so far that end with the tag
    path = _pick(score, gold[:, 0])
    last = gold[:, 0]
    for at in range(1, emissions.shape[1]):
        on, word, tag = mask[:, at], emissions[:, at], gold[:, at]
        reached = torch.logsumexp(score[:, :, None] + transitions.step, dim=1) + word
        score = torch.where(on[:, None], reached, score)
        path = path + torch.where(on, transitions.step[last, tag] + _pick(word, tag), 0.0)
        last = torch.where(on, tag, last)
    likelihood: Tensor = path + transitions.end[last] - torch.logsumexp(score + transitions.end, dim=1)
    return likelihood


def _pick(scores: Tensor, tags: Tensor) -> Tensor:
    return scores.gather(1, tags[:, None]).squeeze(1)
