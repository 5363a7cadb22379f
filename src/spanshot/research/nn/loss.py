"""Logits of candidate spans and of words, and their cross-entropy with gold spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spanshot.decode.scores import Bounds
from spanshot.tags import outermost, tags_from_spans
from spanshot.types import Sentence

IGNORED = -100  # the class that cross-entropy ignores


@dataclass(frozen=True, slots=True)
class SpanLogits:
    """A logit for each candidate span of a sentence and class: column 0 is O, then the labels."""

    labels: tuple[str, ...]
    bounds: Bounds
    logits: Tensor  # [spans, 1 + labels]
    evidence: Tensor | None = None  # [spans, support spans of all labels]: their similarities, if examples decide


@dataclass(frozen=True, slots=True)
class TokenLogits:
    """A logit for each word of a sentence and tag: column 0 is O."""

    tags: tuple[str, ...]
    logits: Tensor  # [words, tags]
    nearest: Tensor | None = None  # [words, tags]: number of the nearest support word, if single words decide


def span_loss(logits: Sequence[SpanLogits], gold: Sequence[Sentence]) -> Tensor:
    """Return the mean cross-entropy over the candidate spans of a sentence, averaged over sentences.

    Gold spans that are no candidates (longer than the longest) are ignored. If O has no logit (a support set without O
    spans), O spans are ignored.
    """
    classes: list[int] = []
    sizes: list[int] = []
    for sentence_logits, sentence in zip(logits, gold, strict=True):
        column = {label: number for number, label in enumerate(sentence_logits.labels, start=1)}
        gold_columns = {(span.start, span.end): column[span.label] for span in sentence.spans}
        classes += [gold_columns.get((start, end), 0) for start, end in sentence_logits.bounds.tolist()]
        sizes.append(len(sentence_logits.bounds))
    return _mean_over_sentences(torch.cat([sentence.logits for sentence in logits]), classes, sizes)


def token_loss(logits: Sequence[TokenLogits], gold: Sequence[Sentence], scheme: str) -> Tensor:
    """Return the mean cross-entropy over the words of a sentence, averaged over sentences.

    Only the outermost of nested spans count. If O has no logit, words outside of spans are ignored.
    """
    classes: list[int] = []
    for sentence_logits, sentence in zip(logits, gold, strict=True):
        classes += gold_tags(sentence, sentence_logits.tags, scheme)
    return _mean_over_sentences(
        torch.cat([sentence.logits for sentence in logits]), classes, [len(sentence) for sentence in gold]
    )


def gold_tags(sentence: Sentence, tags: Sequence[str], scheme: str) -> list[int]:
    """Return the number of each word's tag among ``tags``; ``IGNORED`` for other tags."""
    number = {tag: at for at, tag in enumerate(tags)}
    return [number.get(tag, IGNORED) for tag in tags_from_spans(len(sentence), outermost(sentence.spans), scheme)]


def _mean_over_sentences(logits: Tensor, classes: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Cross-entropy of ``logits`` [all, classes]; each sentence, with ``sizes`` rows, has the same weight."""
    weights = [1.0 / (size * len(sizes)) for size in sizes for _ in range(size)]
    target = torch.tensor(classes, device=logits.device)
    weight = torch.tensor(weights, device=logits.device)
    counted = torch.isfinite(logits[:, 0]) | (target > 0)
    losses = F.cross_entropy(logits, target, reduction="none").where(counted, 0.0)
    return (losses * weight).sum()
