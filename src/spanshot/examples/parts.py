"""Split examples into parts, with each label spread over as many parts as possible."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from spanshot.types import Sentence


def parts_of(sentences: Sequence[Sentence], limit: int = 0) -> Iterator[list[int]]:
    """Yield the numbers of sentences that are held out together: each alone, or at most ``limit`` parts.

    Sentences with the same words are always in the same part. The examples of a label are spread evenly, rare
    labels first, so two examples of a label are never in the same part only.
    """
    groups = same_words(sentences)
    if not limit or len(groups) <= limit:
        yield from groups
        return
    labels = [sorted({span.label for number in group for span in sentences[number].spans}) for group in groups]
    totals = Counter(label for group_labels in labels for label in group_labels)
    rarest_first = [sorted(group_labels, key=lambda label: (totals[label], label)) for group_labels in labels]
    parts: list[list[int]] = [[] for _ in range(limit)]
    counts: list[Counter[str]] = [Counter() for _ in range(limit)]
    rarity = [[totals[label] for label in group_labels] or [len(groups)] for group_labels in rarest_first]
    for at in sorted(range(len(groups)), key=lambda at: (rarity[at], at)):
        group_labels = rarest_first[at]
        best = min(
            range(limit), key=lambda part: ([counts[part][label] for label in group_labels], len(parts[part]), part)
        )
        parts[best] += groups[at]
        counts[best].update(group_labels)
    yield from (sorted(part) for part in parts)


def sample_of(sentences: Sequence[Sentence], limit: int) -> list[int]:
    """Return the numbers of at most ``limit`` sentences, covering all labels evenly.

    The first example of each label comes first, then the second of each, and so on. Sentences without a span count
    as a separate label.
    """
    counts: Counter[str] = Counter()
    ranks = []
    for number, sentence in enumerate(sentences):
        labels = {span.label for span in sentence.spans} or {""}
        ranks.append((min(counts[label] for label in labels), number))
        counts.update(labels)
    return sorted(number for _, number in sorted(ranks)[:limit])


def same_words(sentences: Sequence[Sentence]) -> list[list[int]]:
    """Return the numbers of the sentences, grouped by their words."""
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        groups[sentence.words].append(number)
    return list(groups.values())
