"""From scores and gold spans to a number to minimise."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from spanshot.decode.scores import SpanScores
from spanshot.types import Sentence


def span_loss(scored: Sequence[SpanScores], gold: Sequence[Sentence]) -> Tensor:
    """Mean cross-entropy over the candidate spans of a sentence, and then over sentences.

    A gold span that is no candidate (longer than the longest) has no part in it. Where O has no score at all
    (the support held no O span), O spans have none either.
    """
    classes: list[int] = []
    weights: list[float] = []
    for scores, sentence in zip(scored, gold, strict=True):
        column = {label: number for number, label in enumerate(scores.labels, start=1)}
        wanted = {(span.start, span.end): column[span.label] for span in sentence.spans}
        classes += [wanted.get((start, end), 0) for start, end in scores.bounds.tolist()]
        weights += [1.0 / (len(scores.bounds) * len(gold))] * len(scores.bounds)
    logits = torch.cat([scores.scores for scores in scored])  # [all spans, 1 + labels]
    target = torch.tensor(classes, device=logits.device)
    weight = torch.tensor(weights, device=logits.device)
    counted = torch.isfinite(logits[:, 0]) | (target > 0)
    losses = F.cross_entropy(logits, target, reduction="none").where(counted, 0.0)
    return (losses * weight).sum()
