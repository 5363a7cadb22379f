"""Rows of figures in a JSON file: written after each row, so that an interrupted measurement resumes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from spanshot.errors import DataError
from spanshot.files import write_text

Value: TypeAlias = "str | int | float | list[float] | list[int]"
Row: TypeAlias = dict[str, Value]


class Ledger:
    """Rows with a key: some of their fields. Sorted by key."""

    def __init__(self, path: Path, keys: tuple[str, ...]) -> None:
        self.path = path
        self.keys = keys
        self._rows: dict[tuple[str, ...], Row] = {}
        if path.exists():
            try:
                for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
                    self._rows[self._key(row)] = row
            except (ValueError, KeyError, TypeError):
                raise DataError(f"{path}: not a file of results; give another --out or remove it") from None

    def __iter__(self) -> Iterator[Row]:
        return iter(row for _, row in sorted(self._rows.items()))

    def has(self, row: Mapping[str, Value], *same: str) -> bool:
        """Return whether there is a row with the same key, and with the same values of the fields ``same``."""
        recorded = self._rows.get(self._key(row))
        return recorded is not None and all(recorded.get(name) == row[name] for name in same)

    def add(self, row: Row) -> None:
        """Add a row, replace the one with the same key, and write the file."""
        self._rows[self._key(row)] = row
        lines = ",\n".join(json.dumps(recorded, ensure_ascii=False) for recorded in self)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, [f'{{"rows": [\n{lines}\n]}}\n'])

    def _key(self, row: Mapping[str, Value]) -> tuple[str, ...]:
        return tuple(f"{row[name]:>6}" if isinstance(row[name], int) else str(row[name]) for name in self.keys)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table.

    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
