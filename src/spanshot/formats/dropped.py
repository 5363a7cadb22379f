"""Count the spans and records that could not be used, by reason, with the first few of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

MAX_LISTED = 3
"""Maximum number of cases listed per reason."""


class DropReason(StrEnum):
    """Why a span, or a whole record, is left out."""

    INSIDE_WORD = "inside a word"
    OUTSIDE_TEXT = "outside the text"
    NO_WORD = "contains no word"
    NO_LABEL = "no label"
    MISMATCH = "text does not match"
    IN_PIECES = "discontinuous"
    NOT_TEXT = "not in plain text"
    NO_TEXT = "no text"
    NOT_ACCEPTED = "not accepted"
    NOT_ANNOTATED = "not annotated"
    ANNOTATED_AGAIN = "annotated again"
    TOO_LONG = "too long"
    OVERLAPS = "overlaps another span"
    TOUCHES = "touches a span of the same label"
    LINE_END = "line breaks cannot be written"
    LABEL = "label cannot be written"
    NO_PLACE = "not supported by the format"


@dataclass(frozen=True, slots=True)
class Drop:
    """A span that was left out, or a record if ``span`` is empty."""

    reason: DropReason
    place: str
    span: str = ""
    item: str = ""
    """The kind of item, if neither a span nor a record."""

    def __str__(self) -> str:
        return f"{self.place} {self.span}" if self.span else self.place


@dataclass(frozen=True, slots=True)
class Omission:
    """The number of spans or records left out for one reason, and the first few."""

    reason: DropReason
    item: str
    count: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        plural = "" if self.count == 1 else "s"
        remainder = f"; and {self.count - len(self.first):,} more" if self.count > len(self.first) else ""
        return f"left out {self.count:,} {self.item}{plural} ({self.reason}): {'; '.join(self.first)}{remainder}"


@dataclass(frozen=True, slots=True)
class Dropped:
    """Everything that was left out, by reason. False if nothing was."""

    omissions: tuple[Omission, ...] = ()

    @classmethod
    def of(cls, drops: Iterable[Drop]) -> Dropped:
        """Group drops by reason, in the order in which the reasons first occur."""
        log = DropLog()
        for drop in drops:
            log.add(drop)
        return log.dropped()

    def __bool__(self) -> bool:
        return bool(self.omissions)

    def count(self, reason: DropReason | str) -> int:
        """Return how many spans or records were left out for that reason.

        >>> Dropped.of([Drop(DropReason.NO_TEXT, "a.jsonl:3")]).count("no text")
        1
        """
        return sum(omission.count for omission in self.omissions if omission.reason == reason)

    def summary(self) -> str:
        """Return a line for each reason; empty if nothing was left out.

        >>> print(Dropped.of([Drop(DropReason.INSIDE_WORD, "a.jsonl:3", "'slo' (city)")]).summary())
        left out 1 span (inside a word): a.jsonl:3 'slo' (city)
        """
        return "\n".join(map(str, self.omissions))


class DropLog:
    """Counts drops and keeps the first few of each kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[DropReason, str]] = Counter()
        self._cases: dict[tuple[DropReason, str], list[str]] = {}

    def add(self, drop: Drop, count: int = 1) -> None:
        """Count a drop, or several of one kind and place."""
        kind = (drop.reason, drop.item or ("span" if drop.span else "record"))
        self._counts[kind] += count
        cases = self._cases.setdefault(kind, [])
        if len(cases) < MAX_LISTED:
            cases += [str(drop)] * min(count, MAX_LISTED - len(cases))

    def dropped(self) -> Dropped:
        """Return everything left out so far."""
        return Dropped(tuple(Omission(*kind, count, tuple(self._cases[kind])) for kind, count in self._counts.items()))
