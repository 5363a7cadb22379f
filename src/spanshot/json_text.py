"""JSON in and out: text that is valid everywhere, and values whose types are checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spanshot.errors import DataError

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]

# Characters that json.dumps leaves as they are, but that break a line, a terminal or an encoder: DEL and the C1
# controls, the Unicode line and paragraph separators, direction marks, and lone surrogates.
_UNSAFE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def to_json(value: JsonValue, *, indent: int | None = None) -> str:
    """Return ``value`` as JSON that contains no NaN and no raw control character.

    >>> to_json({"text": "Zürich\\x9b"})
    '{"text": "Zürich\\\\u009b"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def parse_json(text: str) -> JsonValue:
    """Parse one JSON value. Reject NaN and infinities, which are not JSON; all problems are a ``DataError``."""
    try:
        value: JsonValue = json.loads(text, parse_constant=_reject, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise DataError(f"malformed JSON at character {error.colno}: {error.msg}") from None
    except RecursionError:
        raise DataError("JSON is nested too deeply") from None
    except ValueError as error:  # a number that is too large, or one of _reject's
        raise DataError(f"malformed JSON: {str(error).partition(';')[0]}") from None
    return value


def _reject(constant: str) -> float:
    raise ValueError(f"{constant} is not a JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


@dataclass(frozen=True)
class Fields:
    """The fields of a JSON object, read by type. A missing field or another type raises ``DataError``."""

    record: JsonObject

    @classmethod
    def of(cls, value: JsonValue) -> Fields:
        """Read the fields of ``value``, which must be an object."""
        if not isinstance(value, Mapping):
            raise DataError("expected a JSON object")
        return cls(value)

    def value(self, name: str) -> JsonValue:
        """Return a field of any type."""
        if name not in self.record:
            raise DataError(f"field {name!r} is missing")
        return self.record[name]

    def text(self, name: str) -> str:
        """Return a string."""
        value = self.value(name)
        if not isinstance(value, str):
            raise DataError(f"field {name!r} must be a string")
        return value

    def integer(self, name: str) -> int:
        """Return a whole number."""
        value = self.value(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise DataError(f"field {name!r} must be a whole number")
        return value

    def number(self, name: str) -> float:
        """Return a number."""
        value = self.value(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise DataError(f"field {name!r} must be a number")
        try:
            return float(value)
        except OverflowError:
            raise DataError(f"field {name!r} is too large") from None

    def optional_number(self, name: str) -> float | None:
        """Return a number, or None for null."""
        return None if self.value(name) is None else self.number(name)

    def object(self, name: str) -> Fields:
        """Return the fields of a nested object."""
        value = self.value(name)
        if not isinstance(value, Mapping):
            raise DataError(f"field {name!r} must be an object")
        return Fields(value)

    def list(self, name: str) -> Iterator[JsonValue]:
        """Return the items of a list."""
        value = self.value(name)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise DataError(f"field {name!r} must be a list")
        return iter(value)
