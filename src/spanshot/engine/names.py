"""Names of labels as words that an encoder can read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

ABBREVIATIONS = {
    "PER": "person",
    "PERS": "person",
    "ORG": "organization",
    "LOC": "location",
    "GPE": "country, city or state",
    "FAC": "facility",
    "NORP": "nationality, religion or political group",
    "MISC": "miscellaneous name",
}
"""Labels of common annotation schemes that are no words."""
GENERIC = frozenset(("category", "class", "entity", "field", "group", "label", "mention", "slot", "tag", "type"))
"""Words that say nothing about a label if only numbers and letters stand beside them."""


def in_words(label: str) -> str:
    """Return a label's name in words.

    >>> in_words("object_part_ofSeries"), in_words("person-GPE2"), in_words("timeRange")
    ('object part of series', 'person gpe 2', 'time range')
    """
    spaced = "".join(character if character.isalnum() else " " for character in label)
    parts = [spaced[:1]]
    for before, after in pairwise(spaced):
        camel = before.islower() and after.isupper()
        number = before.isdigit() != after.isdigit()
        parts.append(f" {after}" if camel or number else after)
    return " ".join("".join(parts).lower().split()) or label


@lru_cache(maxsize=1024)
def readable(label: str) -> str:
    """Return the name by which an encoder reads a label that has no other name.

    >>> readable("date_from"), readable("ORG")
    ('date from', 'organization')
    """
    return ABBREVIATIONS.get(label) or in_words(label)


def readable_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return the name by which an encoder reads each label, given their names; an empty one is made from the label.

    >>> readable_names({"ORG": "", "GOVLAW": "governing law"})
    {'ORG': 'organization', 'GOVLAW': 'governing law'}
    """
    return {label: name or readable(label) for label, name in names.items()}


def says_nothing(name: str) -> bool:
    """Return whether a name only numbers a label.

    >>> [says_nothing(name) for name in ("label 3", "B", "T1", "date", "type of room", "vitamin C")]
    [True, True, True, False, False, False]
    """
    words = in_words(name).split()
    numbers = [word for word in words if word.isdigit() or (len(word) == 1 and word.isascii())]
    return bool(numbers) and all(word in numbers or word in GENERIC for word in words)


@lru_cache(maxsize=1024)
def name_to_encode(label: str, name: str, has_examples: bool) -> str:
    """Return the name by which an encoder reads a label; an empty one if it says nothing and there are examples.

    Such a name would only mislead. Without an example it is all there is.

    >>> name_to_encode("B", "brand", True), name_to_encode("B", "", True), name_to_encode("B", "", False)
    ('brand', '', 'b')
    """
    text = name or readable(label)
    return "" if has_examples and says_nothing(text) else text
