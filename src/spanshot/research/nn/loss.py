"""From scores and gold spans to a number to minimise."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from spanshot.decode.scores import SpanScores, TokenScores
from spanshot.tags import outermost, tags_from_spans
from spanshot.types import Sentence

IGNORED = -100  # what cross-entropy leaves out


def span_loss(scored: Sequence[SpanScores], gold: Sequence[Sentence]) -> Tensor:
    """Mean cross-entropy over the candidate spans of a sentence, and then over sentences.

    A gold span that is no candidate (longer than the longest) has no part in it. Where O has no score at all
    (the support held no O span), O spans have none either.
    """
    classes: list[int] = []
    sizes: list[int] = []
    for scores, sentence in zip(scored, gold, strict=True):
        column = {label: number for number, label in enumerate(scores.labels, start=1)}
        wanted = {(span.start, span.end): column[span.label] for span in sentence.spans}
        classes += [wanted.get((start, end), 0) for start, end in scores.bounds.tolist()]
        sizes.append(len(scores.bounds))
    return _mean_over_sentences(torch.cat([scores.scores for scores in scored]), classes, sizes)


def token_loss(scored: Sequence[TokenScores], gold: Sequence[Sentence], scheme: str) -> Tensor:
    """Mean cross-entropy over the words of a sentence, and then over sentences. Of nested spans the outermost count.

    Where O has no score at all, words outside of every span have none either.
    """
    classes: list[int] = []
    for scores, sentence in zip(scored, gold, strict=True):
        classes += gold_tags(sentence, scores.tags, scheme)
    return _mean_over_sentences(torch.cat([scores.scores for scores in scored]), classes, [len(s) for s in gold])


def gold_tags(sentence: Sentence, tags: Sequence[str], scheme: str) -> list[int]:
    """The number among ``tags`` of each word's tag; ``IGNORED`` for a tag that is not among them."""
    number = {tag: at for at, tag in enumerate(tags)}
    return [number.get(tag, IGNORED) for tag in tags_from_spans(len(sentence), outermost(sentence.spans), scheme)]


def _mean_over_sentences(logits: Tensor, classes: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Cross-entropy of ``logits`` [all, classes]; each sentence, of so many rows, weighs the same."""
    weights = [1.0 / (size * len(sizes)) for size in sizes for _ in range(size)]
    target = torch.tensor(classes, device=logits.device)
    weight = torch.tensor(weights, device=logits.device)
    counted = torch.isfinite(logits[:, 0]) | (target > 0)
    losses = F.cross_entropy(logits, target, reduction="none").where(counted, 0.0)
    return (losses * weight).sum()
