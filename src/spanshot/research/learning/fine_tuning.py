"""What the methods have in common that learn a support set by gradient steps, on a copy of themselves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spanshot.errors import ConfigError
from spanshot.research.learning.method import Method, evaluating
from spanshot.research.nn.rates import rate_groups
from spanshot.types import ScoredSpan, Sentence, SupportSet


@dataclass(frozen=True)
class FineTuneSettings:
    """How a method is fine-tuned on a support set."""

    finetune_steps: int = 30
    """Least number of fine-tuning steps on a support set."""
    finetune_epochs: int = 0
    """Least number of passes over a support set (0: finetune_steps, however many examples there are)."""
    finetune_batch: int = 16
    """Support sentences per fine-tuning step, drawn at random (0: all)."""
    finetune_head_rate: float = 5e-3
    """Learning rate of everything but the encoder while fine-tuning."""
    finetune_until: float = 0.01
    """Stop fine-tuning once the loss of a step is below this."""
    finetune_seed: int = 1
    """Seed of fine-tuning: the same seed and support set give the same tagger."""

    def __post_init__(self) -> None:
        limited = ("finetune_steps", "finetune_epochs", "finetune_batch", "finetune_head_rate", "finetune_until")
        if min(getattr(self, name) for name in limited) < 0:
            raise ConfigError(f"{', '.join(limited)} must be 0 or more")

    def steps_on(self, sentences: int) -> int:
        """Return the number of steps on a support set of so many sentences.

        >>> settings = FineTuneSettings(finetune_steps=10, finetune_epochs=8, finetune_batch=8)
        >>> settings.steps_on(5), settings.steps_on(30)
        (10, 30)
        """
        batch = min(self.finetune_batch or sentences, sentences)
        return max(self.finetune_steps, math.ceil(self.finetune_epochs * sentences / batch))

    @property
    def encoder_rate(self) -> float:
        """The encoder's learning rate; 0 leaves it as it is."""
        return 0.0


@dataclass(frozen=True)
class WholeFineTuneSettings(FineTuneSettings):
    """How a support set is learned where the encoder learns, too."""

    finetune_rate: float = 1e-4
    """Learning rate of the encoder on a support set; 0 leaves it as it is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.finetune_rate < 0:
            raise ConfigError(f"finetune_rate must be 0 or more; found {self.finetune_rate}")

    @property
    def encoder_rate(self) -> float:  # noqa: D102
        return self.finetune_rate


class Learner(nn.Module, ABC):
    """A copy of a method's parts, made for one support set, on its way to be a tagger."""

    support: SupportSet

    @abstractmethod
    def forward(self, numbers: Sequence[int]) -> Tensor:
        """The loss on the support sentences of these numbers."""

    @abstractmethod
    def tag(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """The spans found in each sentence."""


class FineTuningMethod(Method):
    """A method that hands a learner of its own to the steps that ``FineTuneSettings`` describe."""

    settings: FineTuneSettings

    @abstractmethod
    def learner(self, support: SupportSet) -> Learner:
        """A learner that shares no trained weight with the method. Chance is seeded when this is called."""

    def fit(self, support: SupportSet) -> TunedTagger:  # noqa: D102
        with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng():
            torch.manual_seed(self.settings.finetune_seed)
            learner = self.learner(in_standard_order(support)).train()
            _take_steps(learner, self.settings)
        return TunedTagger(learner.eval().requires_grad_(False))


@dataclass(frozen=True)
class TunedTagger:
    """A learner that has learned."""

    learner: Learner
    batch_size: int = 32

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Tag the sentences, a few at a time."""
        found: list[list[ScoredSpan]] = []
        for start in range(0, len(sentences), self.batch_size):
            with evaluating(self.learner):
                found += self.learner.tag(sentences[start : start + self.batch_size])
        return found


def in_standard_order(support: SupportSet) -> SupportSet:
    """The same examples in an order that depends on neither the given one nor the labels' names.

    Rounding differs with the order, and gradient steps make much of it.
    """
    places = [tuple((span.start, span.end) for span in sentence.spans) for sentence in support.sentences]
    order = sorted(range(len(places)), key=lambda number: (support.sentences[number].words, places[number]))
    sentences = [support.sentences[number] for number in order]
    labels = dict.fromkeys(span.label for sentence in sentences for span in sentence.spans)
    return SupportSet(tuple(labels), tuple(sentences))


def _take_steps(learner: Learner, settings: FineTuneSettings) -> None:
    if not settings.encoder_rate:
        for name, weight in learner.named_parameters():
            if name.startswith("encoder."):
                weight.requires_grad_(False)  # spares the way back through the encoder
    groups = rate_groups(learner, settings.encoder_rate, settings.finetune_head_rate)
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    sentences = len(learner.support.sentences)
    some = settings.finetune_batch if 0 < settings.finetune_batch < sentences else sentences
    for _ in range(settings.steps_on(sentences)):
        numbers = torch.randperm(sentences)[:some].tolist() if some < sentences else list(range(sentences))
        loss = learner(numbers)
        if loss.item() < settings.finetune_until:
            break
        loss.backward()
        nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
