"""A warm start: before any episode, the encoder learns the source labels as an ordinary span classifier."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from spanshot.decode.scores import SpanScores
from spanshot.research.learning.method import Method
from spanshot.research.nn.loss import span_loss
from spanshot.research.nn.spans import SpanHead, SpanVectors, bounds_up_to
from spanshot.types import Sentence, Span

LONGEST = 8
ANY = "any"


class SpanClassifier(nn.Module):
    """A method's encoder and span head under a linear layer over the source labels, which is thrown away.

    A method's span prior, if it has one, learns at the same time which spans are marked at all.
    """

    def __init__(self, method: Method, labels: Sequence[str]) -> None:
        super().__init__()
        self.encoder = method.encoder
        own = getattr(method, "span_head", None)
        self.span_head = (
            own if isinstance(own, SpanHead) else SpanHead(method.encoder.size, 100, hidden=200, word_dropout=0.1)
        )
        self.prior = prior if isinstance(prior := getattr(method, "prior", None), nn.Linear) else None
        self.labels = tuple(labels)
        self.classify = nn.Linear(self.span_head.size, 1 + len(self.labels))

    def forward(self, sentences: Sequence[Sentence]) -> Tensor:
        """The loss on labelled sentences."""
        bounds = [bounds_up_to(len(sentence), LONGEST) for sentence in sentences]
        spans = self.span_head(self.encoder(sentences), bounds)
        logits = self.classify(spans.vectors[spans.mask]).split([len(own) for own in bounds])
        scored = [SpanScores(self.labels, own, part) for own, part in zip(bounds, logits, strict=True)]
        loss = span_loss(scored, sentences)
        return loss if self.prior is None else loss + self._prior_loss(spans, sentences)

    def _prior_loss(self, spans: SpanVectors, sentences: Sequence[Sentence]) -> Tensor:
        """By the same loss, with all labels as one."""
        assert self.prior is not None
        sure = self.prior(spans.vectors[spans.mask])  # [all spans, 1]
        both = torch.cat([torch.zeros_like(sure), sure], dim=1)
        parts = torch.split(both, [len(own) for own in spans.bounds])
        scored = [SpanScores((ANY,), own, part) for own, part in zip(spans.bounds, parts, strict=True)]
        return span_loss(scored, [_with_one_label(sentence) for sentence in sentences])


def _with_one_label(sentence: Sentence) -> Sentence:
    return Sentence(sentence.words, tuple(Span(span.start, span.end, ANY) for span in sentence.spans))


def labels_of(sentences: Sequence[Sentence]) -> list[str]:
    """All labels marked in the sentences, in order."""
    return sorted({span.label for sentence in sentences for span in sentence.spans})


def batches(sentences: Sequence[Sentence], size: int) -> Callable[[random.Random], list[Sentence]]:
    """Draws of ``size`` sentences."""
    return lambda rng: rng.sample(sentences, min(size, len(sentences)))
