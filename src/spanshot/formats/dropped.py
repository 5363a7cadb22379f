"""What was left out of somebody's examples, and why: counted and shown, never lost without a word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

SHOWN = 3
"""How many cases of each reason are shown."""


class DropReason(StrEnum):
    """Why a span, or a whole record, is left out."""

    INSIDE_WORD = "inside a word"
    OUTSIDE_TEXT = "outside the text"
    NO_WORD = "no word in it"
    NO_LABEL = "no label"
    MISMATCH = "text does not match"
    IN_PIECES = "not one piece"
    NOT_TEXT = "not in plain text"
    NO_TEXT = "no text"
    NOT_ACCEPTED = "not accepted"
    NOT_ANNOTATED = "not annotated"
    ANNOTATED_AGAIN = "annotated again"
    TOO_LONG = "too long"


@dataclass(frozen=True, slots=True)
class Drop:
    """One thing left out: a span, or a record if ``span`` is empty."""

    reason: DropReason
    place: str
    span: str = ""

    def __str__(self) -> str:
        return f"{self.place} {self.span}" if self.span else self.place


@dataclass(frozen=True, slots=True)
class Omission:
    """All that was left out for one reason: how many, and the first few."""

    reason: DropReason
    thing: str
    count: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        many = "" if self.count == 1 else "s"
        more = f"; and {self.count - len(self.first):,} more" if self.count > len(self.first) else ""
        return f"left out {self.count:,} {self.thing}{many} ({self.reason}): {'; '.join(self.first)}{more}"


@dataclass(frozen=True, slots=True)
class Dropped:
    """Everything left out. Empty, and then false, if there is nothing to tell."""

    omissions: tuple[Omission, ...] = ()

    @classmethod
    def of(cls, drops: Iterable[Drop]) -> Dropped:
        """The drops by reason, in the order in which the reasons first came up."""
        groups: dict[tuple[DropReason, str], list[Drop]] = {}
        for drop in drops:
            groups.setdefault((drop.reason, "span" if drop.span else "record"), []).append(drop)
        return cls(
            tuple(
                Omission(reason, thing, len(group), tuple(map(str, group[:SHOWN])))
                for (reason, thing), group in groups.items()
            )
        )

    def __bool__(self) -> bool:
        return bool(self.omissions)

    def count(self, reason: DropReason | str) -> int:
        """How many spans or records were left out for that reason.

        >>> Dropped.of([Drop(DropReason.NO_TEXT, "a.jsonl:3")]).count("no text")
        1
        """
        return sum(omission.count for omission in self.omissions if omission.reason == reason)

    def summary(self) -> str:
        """A line for each reason; empty if nothing was left out.

        >>> print(Dropped.of([Drop(DropReason.INSIDE_WORD, "a.jsonl:3", "'slo' (city)")]).summary())
        left out 1 span (inside a word): a.jsonl:3 'slo' (city)
        """
        return "\n".join(map(str, self.omissions))
