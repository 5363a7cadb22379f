"""A warm start: before any episode, the encoder learns the source labels as an ordinary span classifier."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from spanshot.decode.scores import SpanScores
from spanshot.methods.base import Method
from spanshot.nn.loss import span_loss
from spanshot.nn.spans import SpanHead, bounds_up_to
from spanshot.types import Sentence

LONGEST = 8


class SpanClassifier(nn.Module):
    """A method's encoder and span head under a linear layer over the source labels, which is thrown away."""

    def __init__(self, method: Method, labels: Sequence[str]) -> None:
        super().__init__()
        self.encoder = method.encoder
        own = getattr(method, "span_head", None)
        self.span_head = own if isinstance(own, SpanHead) else SpanHead(method.encoder.size, 100, 0.1)
        self.labels = tuple(labels)
        self.classify = nn.Linear(self.span_head.size, 1 + len(self.labels))

    def forward(self, sentences: Sequence[Sentence]) -> Tensor:
        """The loss on labelled sentences."""
        bounds = [bounds_up_to(len(sentence), LONGEST) for sentence in sentences]
        spans = self.span_head(self.encoder(sentences), bounds)
        logits = self.classify(spans.vectors[spans.mask]).split([len(own) for own in bounds])
        scored = [SpanScores(self.labels, own, part) for own, part in zip(bounds, logits, strict=True)]
        return span_loss(scored, sentences)


def labels_of(sentences: Sequence[Sentence]) -> list[str]:
    """All labels marked in the sentences, in order."""
    return sorted({span.label for sentence in sentences for span in sentence.spans})


def batches(sentences: Sequence[Sentence], size: int) -> Callable[[random.Random], list[Sentence]]:
    """Draws of ``size`` sentences."""
    return lambda rng: rng.sample(sentences, min(size, len(sentences)))
