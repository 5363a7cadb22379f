"""Which examples made a decision: the share of each support span of the label that was chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spanshot.decode.scores import SpanScores, TokenScores
from spanshot.types import Evidence, ScoredSpan, Span

MOST = 3


def with_evidence(
    found: Sequence[ScoredSpan],
    scores: SpanScores,
    rows: Sequence[slice],
    origin: Sequence[tuple[int, Span]],
) -> list[ScoredSpan]:
    """Add to each span the support spans with the largest weights.

    ``rows`` are the columns of each label's support spans in ``scores.evidence``; ``origin`` are these support spans,
    with the numbers of their sentences. The weights are those of the mean that makes a label's prototype.
    """
    if scores.evidence is None:
        return list(found)
    rows_of = dict(zip(scores.labels, rows, strict=True))
    explained = []
    for one in found:
        at = np.flatnonzero((scores.bounds == (one.span.start, one.span.end)).all(axis=1))[0]
        own = rows_of[one.span.label]
        near = np.asarray(scores.evidence[at, own], dtype=np.float64)
        weights = np.exp(near - near.max())
        weights /= weights.sum()
        best = np.argsort(-weights, kind="stable")[:MOST].tolist()
        places = [origin[own.start + number] for number in best]
        shares = weights[best].tolist()
        reasons = tuple(Evidence(number, span, share) for (number, span), share in zip(places, shares, strict=True))
        explained.append(replace(one, because=reasons))
    return explained


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
        reasons = [Evidence(number, span, count / len(rows)) for (number, span), count in counted.most_common(MOST)]
        explained.append(replace(one, because=tuple(reasons)))
    return explained
