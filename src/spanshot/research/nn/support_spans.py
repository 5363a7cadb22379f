"""The support's candidate spans by class: each label's own, and those outside of every entity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spanshot.decode.scores import Bounds
from spanshot.research.nn.groups import grouped
from spanshot.types import Span, SupportSet


@dataclass(frozen=True)
class SpanMemory:
    """The support's spans, grouped by class."""

    labels: tuple[str, ...]
    vectors: Tensor  # [spans, size]
    label_rows: tuple[slice, ...]
    """Where the spans of each label lie in ``vectors``."""
    o_rows: tuple[slice, ...]
    """The same for the parts of O that have any span: three at most, none for a support without O spans."""
    longest: int = 0
    """Most words of a query's candidates; 0 for as many as the method is set to."""
    label_spans: tuple[tuple[int, Span] | None, ...] = ()
    """Where the labels' spans come from, in the order of ``vectors``: number of the sentence, and span; None for the
    label's name."""


def span_memory(
    support: SupportSet,
    bounds: Sequence[Bounds],
    vectors: Tensor,
    *,
    o_partition: bool,
    o_spans: int,
    names: Tensor | None = None,
) -> SpanMemory:
    """Sort the spans at ``bounds``, whose padded ``vectors`` [sentences, most spans, size] are given, by class.

    ``o_partition`` tells O spans apart by whether they touch no entity, lie inside one, or neither. Of each part
    at most ``o_spans`` are kept, evenly spread; all for 0. ``names`` [labels, size] are one more span of each label.
    """
    labels, parts_of_o = _places_by_class(support, bounds, vectors.shape[1], o_partition)
    o_places = [_evenly(own, o_spans) for own in parts_of_o if own]
    spans = vectors.flatten(0, 1)
    if names is not None:
        labels = [[*own, len(spans) + number] for number, own in enumerate(labels)]
        spans = torch.cat([spans, names])
    groups = grouped(spans, [*labels, *o_places])
    count = len(support.labels)
    origin: list[tuple[int, Span] | None] = []
    for label in support.labels:
        for number, sentence in enumerate(support.sentences):
            origin += [(number, span) for span in sentence.spans if span.label == label]
        origin += [None] if names is not None else []
    rows = groups.rows
    return SpanMemory(support.labels, groups.vectors, rows[:count], rows[count:], label_spans=tuple(origin))


def _places_by_class(
    support: SupportSet, bounds: Sequence[Bounds], width: int, o_partition: bool
) -> tuple[list[list[int]], list[list[int]]]:
    """Where the spans of each label, and of each part of O, stand among all spans, padded to ``width`` a sentence."""
    labels: dict[str, list[int]] = {label: [] for label in support.labels}
    parts: list[list[int]] = [[], [], []] if o_partition else [[]]
    for row, (sentence, own) in enumerate(zip(support.sentences, bounds, strict=True)):
        at = {(start, end): row * width + number for number, (start, end) in enumerate(own.tolist())}
        for span in sentence.spans:
            labels[span.label].append(at[span.start, span.end])
        marked = {(span.start, span.end) for span in sentence.spans}
        part_of = _parts_of_o(own, sentence.spans) if o_partition else np.zeros(len(own), dtype=np.int64)
        for (place, number), part in zip(at.items(), part_of.tolist(), strict=True):
            if place not in marked:
                parts[part].append(number)
    return list(labels.values()), parts


def _parts_of_o(bounds: Bounds, spans: Sequence[Span]) -> np.ndarray:
    """0 for spans that touch no entity (O1), 1 for those inside one (O2), 2 for the others (O3). [spans]"""
    if not spans:
        return np.zeros(len(bounds), dtype=np.int64)
    marked = np.array([(span.start, span.end) for span in spans])  # [entities, 2]
    start, end = bounds[:, :1], bounds[:, 1:]
    apart = ((end <= marked[:, 0]) | (start >= marked[:, 1])).all(axis=1)
    inside = ((start >= marked[:, 0]) & (end <= marked[:, 1])).any(axis=1)
    return np.where(apart, 0, np.where(inside, 1, 2))


def _evenly(rows: list[int], limit: int) -> list[int]:
    """At most ``limit`` of the rows, spread evenly over them; all of them where ``limit`` is 0."""
    if not limit or len(rows) <= limit:
        return rows
    return [rows[number * len(rows) // limit] for number in range(limit)]
