"""What a label is called, as words that an encoder can read."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_]+")


def in_words(label: str) -> str:
    """A label's name as people would say it.

    >>> in_words("object_part_ofSeries"), in_words("person-GPE2"), in_words("timeRange")
    ('object part of series', 'person gpe 2', 'time range')
    """
    return " ".join(_WORDS.findall(label)).lower() or label
