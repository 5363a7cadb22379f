"""Explain a span by the support spans that hold the words nearest to its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spanshot.decode.scores import TokenScores
from spanshot.decode.spans import MOST_EVIDENCE
from spanshot.types import Evidence, ScoredSpan, Span


def with_nearest_words(
    spans: Sequence[ScoredSpan],
    scores: TokenScores,
    columns: Mapping[str, Sequence[int]],
    origin: Sequence[tuple[int, Span] | None],
) -> list[ScoredSpan]:
    """Add to each span the support spans that hold the words nearest to its own.

    ``columns`` are the columns of each label's tags in ``scores``; ``origin`` is the support span of each support word.
    The weight of a support span is the share of the span's words whose nearest support word of that label is in it.
    """
    if scores.nearest is None:
        return list(spans)
    explained = []
    for scored in spans:
        tags = np.asarray(columns[scored.span.label])
        words = np.arange(scored.span.start, scored.span.end)
        best = tags[np.asarray(scores.scores)[words][:, tags].argmax(axis=1)]  # [words of the span]
        nearest_words = np.asarray(scores.nearest)[words, best].tolist()
        counted = Counter(place for row in nearest_words if (place := origin[row]) is not None)
        reasons = [
            Evidence(number, span, count / len(nearest_words))
            for (number, span), count in counted.most_common(MOST_EVIDENCE)
        ]
        explained.append(replace(scored, because=tuple(reasons)))
    return explained
