"""What may follow what, said without naming labels, and expanded for the labels at hand.

A step from one tag to the next is of a kind: ``O>B`` begins a span, ``B>I same`` goes on with it, ``I>B other``
begins one of another label at once. There are a handful of kinds whatever the labels are, so a table of kinds,
counted or learned on one corpus, serves the label set of any other.
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
    found = []
    for source in (START, OUTSIDE, *prefixes):
        found.append(f"{source}>{OUTSIDE}")
        for target in prefixes:
            inside = source in prefixes
            found += [f"{source}>{target}{how}" for how in ((" same", " other") if inside else ("",))]
        if source != START:
            found.append(f"{source}>{END}")
    return tuple(found)


def count_kinds(sequences: Iterable[Sequence[str]], scheme: str) -> Table:
    """Count how often each kind of step occurs in sequences of tags."""
    number = {kind: at for at, kind in enumerate(kinds(scheme))}
    counts = np.zeros(len(number))
    for tags in sequences:
        for before, after in pairwise([None, *tags, None]):
            counts[number[_kind(before, after, scheme)]] += 1
    return counts


def log_probabilities(counts: Table, scheme: str) -> Table:
    """Of each kind, among those from the same source. One is added to all, so that nothing is impossible."""
    source = np.array([kind.partition(">")[0] for kind in kinds(scheme)])
    total = np.array([(counts[source == own] + 1).sum() for own in source])
    found: Table = np.log((counts + 1) / total)
    return found


def spread(log_table: Table, tags: Sequence[str], scheme: str, temperature: float = 1.0) -> Transitions:
    """Log probabilities of kinds as those of steps between these tags.

    The probability of a kind is shared out evenly among the tags that it can lead to (from ``I-city``, the kind
    "another label" leads to all other labels); then all are raised to the power ``temperature``, and those from
    one tag are made to add up to one again.
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
    """The kind of the step between two tags; None stands for the sentence's edge."""
    table = find_scheme(scheme)
    source, own = (START, "") if before is None else table.split(before) or (OUTSIDE, "")
    target, other = (END, "") if after is None else table.split(after) or (OUTSIDE, "")
    relation = "" if not own or not other else " same" if own == other else " other"
    return f"{source}>{target}{relation}"
