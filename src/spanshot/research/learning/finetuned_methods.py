"""Methods whose ``fit`` takes gradient steps on the support set, on a copy of the method's modules."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar, override

from spanshot.errors import ConfigError
from spanshot.research.learning.method import Method, evaluating
from spanshot.research.learning.support_finetuning import gradients, in_standard_order
from spanshot.research.nn.rates import rate_groups
from spanshot.types import LearnOptions, ScoredSpan, Sentence, SupportSet
from spanshot.words import batches


@dataclass(frozen=True)
class FinetunedSettings:
    """How a method is fine-tuned on a support set."""

    finetune_steps: int = 30
    """Minimum number of fine-tuning steps on a support set."""
    finetune_epochs: int = 0
    """Minimum number of passes over a support set (0: finetune_steps, however many examples there are)."""
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

    @property
    def encoder_rate(self) -> float:
        """Learning rate of the encoder; 0: it is frozen."""
        return 0.0

    def steps_on(self, sentences: int) -> int:
        """Return the number of steps on a support set of ``sentences`` sentences.

        >>> settings = FinetunedSettings(finetune_steps=10, finetune_epochs=8, finetune_batch=8)
        >>> settings.steps_on(5), settings.steps_on(30)
        (10, 30)
        """
        batch = min(self.finetune_batch or sentences, sentences)
        return max(self.finetune_steps, math.ceil(self.finetune_epochs * sentences / batch))


@dataclass(frozen=True)
class WholeFinetunedSettings(FinetunedSettings):
    """How a method is fine-tuned on a support set, encoder included."""

    finetune_rate: float = 1e-4
    """Learning rate of the encoder while fine-tuning (0: it is frozen)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.finetune_rate < 0:
            raise ConfigError(f"finetune_rate must be 0 or more; found {self.finetune_rate}")

    @property
    @override
    def encoder_rate(self) -> float:
        return self.finetune_rate


FinetunedSettingsT = TypeVar("FinetunedSettingsT", bound=FinetunedSettings, default=FinetunedSettings, covariant=True)


class Learner(nn.Module, ABC):
    """A copy of a method's modules for one support set: fine-tuned first, then used to tag."""

    support: SupportSet

    @abstractmethod
    def forward(self, numbers: Sequence[int]) -> Tensor:
        """Return the loss on the support sentences with these numbers."""

    @abstractmethod
    def tag(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Return the spans found in each sentence."""


class FinetunedMethod(Method[FinetunedSettingsT], Generic[FinetunedSettingsT]):
    """A method that builds a learner for each support set; ``FinetunedSettings`` say how it is fine-tuned."""

    @abstractmethod
    def learner(self, support: SupportSet) -> Learner:
        """Return a learner that shares no trained weight with the method. The random generator is seeded."""

    @override
    def fit(self, support: SupportSet, options: LearnOptions | None = None) -> FinetunedTagger:
        options = options or LearnOptions()
        if options.nested:
            raise ConfigError(f"{self.name} cannot find nested entities: it gives each word one tag")
        with gradients(self.settings.finetune_seed):
            learner = self.learner(in_standard_order(support)).train()
            _take_steps(learner, self.settings)
        return FinetunedTagger(learner.eval().requires_grad_(False), options.max_batch_words)


@dataclass(frozen=True)
class FinetunedTagger:
    """A fine-tuned learner."""

    learner: Learner
    max_batch_words: int = 256
    """Maximum number of words per batch, padding included."""

    def __call__(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        """Tag the sentences in batches of like length."""
        spans: list[list[ScoredSpan]] = [[] for _ in sentences]
        for numbers in batches([len(sentence.words) for sentence in sentences], self.max_batch_words):
            with evaluating(self.learner):
                tagged = self.learner.tag([sentences[number] for number in numbers])
            for number, sentence_spans in zip(numbers, tagged, strict=True):
                spans[number] = sentence_spans
        return spans


def _take_steps(learner: Learner, settings: FinetunedSettings) -> None:
    if not settings.encoder_rate:
        for name, weight in learner.named_parameters():
            if name.startswith("encoder."):
                weight.requires_grad_(False)  # saves the backward pass through the encoder
    groups = rate_groups(learner, settings.encoder_rate, settings.finetune_head_rate)
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    sentences = len(learner.support.sentences)
    batch = min(settings.finetune_batch or sentences, sentences)
    for _ in range(settings.steps_on(sentences)):
        numbers = torch.randperm(sentences)[:batch].tolist() if batch < sentences else list(range(sentences))
        loss = learner(numbers)
        if loss.item() < settings.finetune_until:
            break
        loss.backward()
        nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
