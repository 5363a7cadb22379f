"""Fine-tune a metric method on a support set: gradient steps on a copy, with held-out sentences as queries."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from spanshot.errors import ConfigError
from spanshot.research.learning.held_out import held_out_at_random
from spanshot.research.nn.rates import rate_groups
from spanshot.types import Progress, Sentence, SupportSet

if TYPE_CHECKING:
    from spanshot.research.learning.metric import MetricMethod

MethodT = TypeVar("MethodT", bound="MetricMethod")


@dataclass(frozen=True)
class SupportFinetuning:
    """How a metric method is fine-tuned on a support set."""

    steps: int = 10
    """Gradient steps."""
    share: float = 1 / 3
    """Share of the examples that each step holds out at random as the query."""
    encoder_rate: float = 2.5e-5
    """Learning rate of the encoder (0: it is frozen)."""
    head_rate: float = 1e-4
    """Learning rate of everything else."""
    least_shots: float = 5.0
    """Average number of examples per label below which fine-tuning is skipped, because it does harm
    (docs/results.md)."""
    most_words: int = 2000
    """Maximum number of words per step; a larger support set is sampled. Bounds memory."""
    seed: int = 1
    """Seed: the same seed and support set give the same tagger."""

    def __post_init__(self) -> None:
        if self.steps < 0 or not 0 < self.share < 1 or min(self.encoder_rate, self.head_rate) < 0:
            raise ConfigError("steps and rates must be 0 or more, share must be between 0 and 1")


def finetuned(
    method: MethodT,
    support: SupportSet,
    settings: SupportFinetuning,
    watch: Progress | None = None,
) -> MethodT:
    """Return a copy of the method, fine-tuned on the support set.

    Fine-tuning lowers recall, so ``finetuned_bias`` of the method's settings is added to the O bias. The method itself
    is returned if there are too few examples or none can be held out. ``watch`` is called after each step with the
    number of steps done and the number of all steps.
    """
    if sum(len(sentence.spans) for sentence in support.sentences) < settings.least_shots * len(support.labels):
        return method
    rng = random.Random(settings.seed)
    support = in_standard_order(support)
    samples = (_sample(support, settings.most_words, rng) for _ in range(settings.steps))
    drawn = (held_out_at_random(sample, settings.share, rng) for sample in samples)
    episodes = [episode for episode in drawn if episode]
    if not episodes:
        return method
    with gradients(settings.seed):
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
    for weight, original in zip(learner.parameters(), method.parameters(), strict=True):
        weight.requires_grad_(original.requires_grad)
    learner.o_bias += method.settings.finetuned_bias
    return learner.eval()


def _sample(support: SupportSet, most_words: int, rng: random.Random) -> SupportSet:
    """Return the support set, or a random part of it with at most so many words and at least one label."""
    if sum(len(sentence.words) for sentence in support.sentences) <= most_words:
        return support
    sample: list[Sentence] = []
    words = 0
    for sentence in rng.sample(support.sentences, len(support.sentences)):
        words += len(sentence.words)
        if words > most_words and any(other.spans for other in sample):
            break
        sample.append(sentence)
    return SupportSet.of(sample)


@contextmanager
def gradients(seed: int) -> Iterator[None]:
    """Turn on gradients inside and seed torch; afterwards its random state is as before."""
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def in_standard_order(support: SupportSet) -> SupportSet:
    """Return the same examples in an order that depends neither on the given one nor on the names of labels.

    Rounding errors depend on the order, and gradient steps amplify them.
    """
    places = [tuple((span.start, span.end) for span in sentence.spans) for sentence in support.sentences]
    order = sorted(range(len(places)), key=lambda number: (support.sentences[number].words, places[number]))
    sentences = [support.sentences[number] for number in order]
    labels = dict.fromkeys(span.label for sentence in sentences for span in sentence.spans)
    return SupportSet(tuple(labels), tuple(sentences))
