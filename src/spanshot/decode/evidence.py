"""The support spans that hold the words nearest to those of a span."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spanshot.decode.scores import TokenScores
from spanshot.decode.spans import MOST_EVIDENCE
from spanshot.types import Evidence, ScoredSpan, Span


def with_nearest_words(
    found: Sequence[ScoredSpan],
    scores: TokenScores,
    columns: Mapping[str, Sequence[int]],
    origin: Sequence[tuple[int, Span] | None],
) -> list[ScoredSpan]:
    """Add to each span the support spans that hold the words nearest to its own.

    ``columns`` are the columns of each label's tags in ``scores``; ``origin`` is the support span of each support word.
    The weight of a support span is the share of the words whose nearest support word, among those of the label, is in
    it.
    """
    if scores.nearest is None:
        return list(found)
    explained = []
    for one in found:
        tags = np.asarray(columns[one.span.label])
        words = np.arange(one.span.start, one.span.end)
        best = tags[np.asarray(scores.scores)[words][:, tags].argmax(axis=1)]  # [words of the span]
        rows = np.asarray(scores.nearest)[words, best].tolist()
        counted = Counter(place for row in rows if (place := origin[row]) is not None)
        reasons = [
            Evidence(number, span, count / len(rows)) for (number, span), count in counted.most_common(MOST_EVIDENCE)
        ]
        explained.append(replace(one, because=tuple(reasons)))
    return explained
