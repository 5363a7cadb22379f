"""A metric method that goes on learning from the support set itself: some gradient steps, on a copy."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from spanshot.errors import ConfigError
from spanshot.research.learning.fine_tuning import in_standard_order
from spanshot.research.learning.held_out import held_out_at_random
from spanshot.research.learning.metric import MetricMethod
from spanshot.research.nn.rates import rate_groups
from spanshot.types import SupportSet


@dataclass(frozen=True)
class FinetuneSettings:
    """How much is learned from a support set."""

    steps: int = 10
    """Gradient steps."""
    share: float = 1 / 3
    """The share of the examples that is held out in each step, drawn at random: what the others have to find."""
    encoder_rate: float = 2.5e-5
    """Learning rate of the encoder; 0 leaves it as it is."""
    head_rate: float = 1e-4
    """Learning rate of everything else."""
    least_shots: float = 5.0
    """Examples of a label, on average, that practice takes; with fewer it is left out, for it does harm
    (docs/results.md)."""
    seed: int = 1
    """The same seed and the same support set give the same tagger."""

    def __post_init__(self) -> None:
        if self.steps < 0 or not 0 < self.share < 1 or min(self.encoder_rate, self.head_rate) < 0:
            raise ConfigError("steps and rates must be 0 or more, share lie between 0 and 1")


def finetuned(
    method: MetricMethod[Any],
    support: SupportSet,
    settings: FinetuneSettings,
    watch: Callable[[int, int], None] | None = None,
) -> MetricMethod[Any]:
    """A copy of the method that has finetuned on the support set: held-out sentences are its queries.

    Practice makes a model cautious, so its O bias is raised by ``finetuned_bias`` of its settings. A support set of too
    few examples, or of which nothing can be held out, gives the method itself. ``watch`` is called with steps done
    and all.
    """
    if sum(len(sentence.spans) for sentence in support.sentences) < settings.least_shots * len(support.labels):
        return method
    rng = random.Random(settings.seed)
    support = in_standard_order(support)
    drawn = (held_out_at_random(support, settings.share, rng) for _ in range(settings.steps))
    episodes = [episode for episode in drawn if episode]
    if not episodes:
        return method
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        learner = copy.deepcopy(method).train()
        if not settings.encoder_rate:
            learner.encoder.requires_grad_(False)
        optimizer = torch.optim.AdamW(rate_groups(learner, settings.encoder_rate, settings.head_rate))
        for step, episode in enumerate(episodes, start=1):
            torch.autograd.backward(learner.episode_loss(episode))
            nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if watch:
                watch(step, len(episodes))
    learner.zero_grad(set_to_none=True)
    for own, other in zip(learner.parameters(), method.parameters(), strict=True):
        own.requires_grad_(other.requires_grad)
    learner.o_bias += method.settings.finetuned_bias
    return learner.eval()
