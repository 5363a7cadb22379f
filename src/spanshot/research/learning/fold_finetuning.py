"""Fine-tune a method on a support set by pools of held-out sentences, and keep the result only if it does no harm.

Gradient steps on a copy may help with many examples and do harm with few. So the examples are split into folds: each
fold is tagged by a copy that was fine-tuned on the others, and by the method as it is. Only if the copies are at least
as good, a copy is fine-tuned on all examples.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from spanshot.errors import ConfigError
from spanshot.evaluation.counts import Counts, count
from spanshot.examples.parts import parts_of, same_words
from spanshot.research.learning.method import Method
from spanshot.research.learning.support_finetuning import gradients
from spanshot.research.nn.rates import rate_groups
from spanshot.research.pools import Pool, PoolEpisode
from spanshot.types import Progress, Sentence, SupportSet

MethodT = TypeVar("MethodT", bound=Method)


@dataclass(frozen=True)
class FoldFinetuning:
    """How a method is fine-tuned on a support set and checked on folds of it."""

    steps: int = 12
    """Gradient steps."""
    folds: int = 3
    """Parts of the examples that are held out in turn to compare fine-tuned copies with the method as it is."""
    encoder_rate: float = 5e-5
    """Learning rate of the encoder."""
    head_rate: float = 2e-4
    """Learning rate of everything else."""
    episodes: int = 3
    """Episodes of a step; each holds out other examples as the query of the rest."""
    share: float = 1 / 3
    """Share of the examples that an episode holds out."""
    least_shots: float = 5.0
    """Average number of examples per label below which fine-tuning is skipped."""
    most_words: int = 400
    """Maximum number of words per step; a larger support set is sampled. Bounds memory."""
    seed: int = 1
    """Seed: the same seed and support set give the same tagger."""

    def __post_init__(self) -> None:
        if min(self.steps, self.episodes, self.most_words) < 1 or self.folds < 2:
            raise ConfigError("steps, episodes and most_words must be at least 1, folds at least 2")
        if not 0 < self.share < 1 or min(self.encoder_rate, self.head_rate) < 0:
            raise ConfigError("share must be between 0 and 1, rates must be 0 or more")


def finetuned_on_folds(
    method: MethodT, support: SupportSet, settings: FoldFinetuning, watch: Progress | None = None
) -> MethodT | None:
    """Return a fine-tuned copy, or the method itself if the copies are worse on held-out folds.

    None if there are too few examples. ``watch`` is called after each step with the number of steps done and of all
    steps.
    """
    support = _in_order(support)
    spans = sum(len(sentence.spans) for sentence in support.sentences)
    if spans < settings.least_shots * len(support.labels):
        return None
    folds = _folds(support, settings.folds)
    if not folds:
        return None
    done, of = 0, settings.steps * (len(folds) + 1)

    def step() -> None:
        nonlocal done
        done += 1
        if watch:
            watch(done, of)

    before = after = Counts()
    for fold_support, query in folds:
        tuned = _tuned(method, fold_support, settings, step)
        before += _count(method, fold_support, query)
        after += _count(tuned, fold_support, query)
    if after.f1 < before.f1:
        return method
    return _tuned(method, support, settings, step)


def _folds(support: SupportSet, limit: int) -> list[tuple[SupportSet, tuple[Sentence, ...]]]:
    """Return pairs of support and held-out sentences; labels that only the latter have are not marked."""
    folds = []
    for part in parts_of(support.sentences, limit):
        held_out = set(part)
        fold_support = _part(support, [number for number in range(len(support.sentences)) if number not in held_out])
        if fold_support is not None:
            query = tuple(support.sentences[number].with_labels(fold_support.labels) for number in part)
            if any(sentence.spans for sentence in query):
                folds.append((fold_support, query))
    return folds


def _part(support: SupportSet, numbers: Sequence[int]) -> SupportSet | None:
    """Return the support set of some sentences, with the labels that they mark; None if they mark none."""
    sentences = [support.sentences[number] for number in numbers]
    marked = {span.label for sentence in sentences for span in sentence.spans}
    labels = tuple(label for label in support.labels if label in marked)
    if not labels:
        return None
    names = {label: name for label, name in support.name_of.items() if label in marked}
    relabelled = tuple(sentence.with_labels(labels) for sentence in sentences)
    return SupportSet(labels, relabelled, names)  # type: ignore[arg-type]


def _tuned(method: MethodT, support: SupportSet, settings: FoldFinetuning, step: Callable[[], None]) -> MethodT:
    """Return a copy of the method after gradient steps on the support set."""
    rng = random.Random(settings.seed)
    with gradients(settings.seed):
        learner = copy.deepcopy(method).train()
        if not settings.encoder_rate:
            learner.encoder.requires_grad_(False)
        trained = [weight for weight in learner.parameters() if weight.requires_grad]
        optimizer = torch.optim.AdamW(rate_groups(learner, settings.encoder_rate, settings.head_rate))
        for _ in range(settings.steps):
            pool = _pool(learner, support, settings, rng)
            if pool is not None:
                torch.autograd.backward(learner.pool_loss(pool))
                norm = nn.utils.clip_grad_norm_(trained, 1.0)
                if bool(torch.isfinite(norm)):
                    optimizer.step()
                optimizer.zero_grad()
            step()
    learner.zero_grad(set_to_none=True)
    for weight, original in zip(learner.parameters(), method.parameters(), strict=True):
        weight.requires_grad_(original.requires_grad)
    return learner.eval()


def _pool(method: Method, support: SupportSet, settings: FoldFinetuning, rng: random.Random) -> Pool | None:
    """Draw sentences of the support set, and episodes that hold out some of them."""
    sentences: list[Sentence] = []
    words = 0
    for sentence in rng.sample(support.sentences, len(support.sentences)):
        words += len(sentence.words)
        if words > settings.most_words and len(sentences) > 1:
            break
        sentences.append(sentence)
    drawn = [_episode(sentences, settings.share, rng) for _ in range(settings.episodes)]
    episodes = tuple(episode for episode in drawn if episode)
    return Pool(tuple(sentences), method.names_of(support), episodes) if episodes else None


def _episode(sentences: Sequence[Sentence], share: float, rng: random.Random) -> PoolEpisode | None:
    """Hold out a share of the sentences, those with the same words together.

    None if no held-out span has a label of the remaining sentences.
    """
    groups = same_words(sentences)
    if len(groups) < 2:
        return None
    for _ in range(10):
        query = sorted(n for group in rng.sample(groups, max(1, round(share * len(groups)))) for n in group)
        held_out = set(query)
        support = [number for number in range(len(sentences)) if number not in held_out]
        labels = dict.fromkeys(span.label for number in support for span in sentences[number].spans)
        if any(span.label in labels for number in query for span in sentences[number].spans):
            return PoolEpisode(tuple(labels), tuple(support), tuple(query))
    return None


def _count(method: Method, support: SupportSet, query: Sequence[Sentence]) -> Counts:
    tagged = method.fit(support)(query)
    pairs = zip(query, tagged, strict=True)
    return sum((count(sentence.spans, [scored.span for scored in spans]) for sentence, spans in pairs), Counts())


def _in_order(support: SupportSet) -> SupportSet:
    """Return the same examples in an order that does not depend on the given one, since rounding errors do."""
    key = {
        number: (sentence.words, tuple((span.start, span.end) for span in sentence.spans))
        for number, sentence in enumerate(support.sentences)
    }
    order = sorted(key, key=key.__getitem__)
    return SupportSet(support.labels, tuple(support.sentences[number] for number in order), support.names)
