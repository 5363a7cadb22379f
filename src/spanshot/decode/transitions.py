"""Scores of steps between tags, stored without label names and expanded for any label set.

Every step from one tag to the next has a kind: ``O>B`` begins a span, ``B>I same`` continues it, ``I>B other`` begins
a span of another label. The kinds do not depend on the labels, so a table of kinds that was counted or learned on one
corpus applies to the labels of any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spanshot.tags import find_scheme
from spanshot.types import OUTSIDE

Indices = npt.NDArray[np.int64]
Table = npt.NDArray[np.float64]  # [kinds] or [tags]

START, END = "start", "end"


@dataclass(frozen=True, slots=True)
class Transitions:
    """Scores of starting with a tag, of each step between two tags, and of ending with a tag."""

    start: Table  # [tags]
    step: npt.NDArray[np.float64]  # [tags, tags]: from, to
    end: Table  # [tags]


@lru_cache
def kinds(scheme: str) -> tuple[str, ...]:
    """Return every kind of step that a scheme has.

    >>> kinds("io")
    ('start>O', 'start>I', 'O>O', 'O>I', 'O>end', 'I>O', 'I>I same', 'I>I other', 'I>end')
    """
    prefixes = find_scheme(scheme).prefixes or find_scheme(scheme).inner
    steps = []
    for source in (START, OUTSIDE, *prefixes):
        steps.append(f"{source}>{OUTSIDE}")
        for target in prefixes:
            inside = source in prefixes
            steps += [f"{source}>{target}{how}" for how in ((" same", " other") if inside else ("",))]
        if source != START:
            steps.append(f"{source}>{END}")
    return tuple(steps)


def count_kinds(sequences: Iterable[Sequence[str]], scheme: str) -> Table:
    """Count how often each kind of step occurs in sequences of tags."""
    number = {kind: at for at, kind in enumerate(kinds(scheme))}
    counts = np.zeros(len(number))
    for tags in sequences:
        for before, after in pairwise([None, *tags, None]):
            counts[number[_kind(before, after, scheme)]] += 1
    return counts


def log_probabilities(counts: Table, scheme: str) -> Table:
    """Return the log probability of each kind among those from the same tag, with add-one smoothing."""
    source = np.array([kind.partition(">")[0] for kind in kinds(scheme)])
    total = np.array([(counts[source == kind_source] + 1).sum() for kind_source in source])
    log_shares: Table = np.log((counts + 1) / total)
    return log_shares


def spread(log_table: Table, tags: Sequence[str], scheme: str, temperature: float = 1.0) -> Transitions:
    """Expand the log probabilities of kinds to steps between these tags.

    The probability of a kind is divided evenly among the tags it leads to (from ``I-city``, "another label" leads to
    all other labels). All probabilities are then raised to the power ``temperature``, and those from one tag are
    normalized again.
    """
    start, step, end = kinds_of_steps(tuple(tags), scheme)
    rows = [np.append(row, last) for row, last in zip(step, end, strict=True)]

    def shared(row: Indices) -> Table:
        values = temperature * (log_table[row] - np.log([(row == kind).sum() for kind in row]))
        normal: Table = values - np.logaddexp.reduce(values)
        return normal

    steps = np.stack([shared(row) for row in rows])
    return Transitions(shared(start), steps[:, :-1], steps[:, -1])


@lru_cache(maxsize=256)
def kinds_of_steps(tags: tuple[str, ...], scheme: str) -> tuple[Indices, Indices, Indices]:
    """Return the number of the kind of each step: from the start [tags], between tags [tags, tags], to the end."""
    number = {kind: at for at, kind in enumerate(kinds(scheme))}
    start = np.array([number[_kind(None, tag, scheme)] for tag in tags])
    step = np.array([[number[_kind(before, after, scheme)] for after in tags] for before in tags])
    end = np.array([number[_kind(tag, None, scheme)] for tag in tags])
    return start, step, end


def _kind(before: str | None, after: str | None, scheme: str) -> str:
    """Return the kind of the step between two tags; None stands for the start or end of the sentence."""
    table = find_scheme(scheme)
    source, label = (START, "") if before is None else table.split(before) or (OUTSIDE, "")
    target, next_label = (END, "") if after is None else table.split(after) or (OUTSIDE, "")
    relation = "" if not label or not next_label else " same" if label == next_label else " other"
    return f"{source}>{target}{relation}"
