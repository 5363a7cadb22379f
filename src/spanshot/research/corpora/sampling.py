"""Sample episodes from labelled sentences by the two published rules."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from spanshot.errors import EpisodeError
from spanshot.types import Episode, Sentence, SupportSet

ATTEMPTS = 100
"""Number of failed draws after which a request counts as impossible."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sentences with an index for the samplers."""

    sentences: tuple[Sentence, ...]
    counts: tuple[dict[str, int], ...]
    """Number of spans of each label, by sentence."""
    by_label_set: dict[frozenset[str], list[int]]
    """Positions of the sentences with exactly these labels."""
    by_label: dict[str, list[int]]
    """Positions of the sentences with the label; labels are in alphabetical order."""

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> Corpus:
        """Index sentences. Duplicates are dropped, so that no query sentence is in its own support."""
        first: dict[tuple[str, ...], Sentence] = {}
        for sentence in sentences:
            first.setdefault(sentence.words, sentence)
        distinct = tuple(first.values())
        counts = tuple(dict(Counter(span.label for span in sentence.spans)) for sentence in distinct)
        by_label_set: dict[frozenset[str], list[int]] = defaultdict(list)
        by_label: dict[str, list[int]] = defaultdict(list)
        for index, count in enumerate(counts):
            by_label_set[frozenset(count)].append(index)
            for label in count:
                by_label[label].append(index)
        return cls(distinct, counts, dict(by_label_set), dict(sorted(by_label.items())))

    def within(self, labels: Collection[str]) -> list[int]:
        """Return the positions of sentences that have no other labels than these."""
        allowed = frozenset(labels)
        positions: list[int] = []
        for label_set, indices in self.by_label_set.items():
            if label_set <= allowed:
                positions += indices
        return positions

    def spans_per_label(self, at_most: float = math.inf) -> dict[str, int]:
        """Count the spans of each label, in sentences with at most ``at_most`` of them."""
        return {
            label: sum(count for i in indices if (count := self.counts[i][label]) <= at_most)
            for label, indices in self.by_label.items()
        }


def _shuffled(items: Sequence[int], rng: random.Random) -> Iterator[int]:
    """Yield the items in random order, lazily and without copying the sequence."""
    moved: dict[int, int] = {}  # a Fisher-Yates shuffle that stores only the positions it has changed
    for last in range(len(items) - 1, -1, -1):
        at = int(rng.random() * (last + 1))
        yield items[moved.get(at, at)]
        moved[at] = moved.get(last, last)


def _at_least_one(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise EpisodeError(f"{name} must be at least 1; found {value}")


class FewNerdSampler:
    """Ding et al., Few-NERD: A Few-shot Named Entity Recognition Dataset, 2021: N-way K~2K-shot.

    Draw N labels, then sentences until each label has at least K spans. A sentence is taken if all its labels are
    among the N, no label would exceed 2K spans, and at least one of its labels is still below K. The query is drawn
    by the same rule from the remaining sentences, with ``query_k`` for K.

    Departures: sentences with the same words count as one; labels with too few spans are never drawn (``left_out``
    has them with their counts), where the released code would search forever.
    """

    def __init__(self, sentences: Iterable[Sentence] | Corpus, n: int, k: int, query_k: int | None = None) -> None:
        query_k = k if query_k is None else query_k
        _at_least_one(n=n, k=k, query_k=query_k)
        self.n, self.k, self.query_k = n, k, query_k
        self._corpus = sentences if isinstance(sentences, Corpus) else Corpus.of(sentences)
        usable = self._corpus.spans_per_label(at_most=2 * max(k, query_k))
        self.labels = tuple(label for label, count in usable.items() if count >= k + query_k)
        self.left_out = {label: count for label, count in usable.items() if count < k + query_k}
        if len(self.labels) < n:
            short = "".join(f"; {label!r} has {count}" for label, count in self.left_out.items())
            raise EpisodeError(
                f"{n}-way {k}-shot episodes need {n} labels with at least {k + query_k} spans "
                f"({k} for the support, {query_k} for the query); found {len(self.labels)} such{short}"
            )

    def sample(self, rng: random.Random, labels: Sequence[str] | None = None) -> Episode:
        """Sample an episode of ``n`` random labels, or of the given ones."""
        for label in labels or ():
            if label not in self.labels:
                raise EpisodeError(
                    f"label {label!r} has {self.left_out.get(label, 0)} usable spans; an episode of "
                    f"{self.k}-shot support and {self.query_k}-shot query needs {self.k + self.query_k}"
                )
        short = ""
        for _ in range(ATTEMPTS):
            chosen = sorted(labels or rng.sample(self.labels, self.n))
            candidates = self._corpus.within(chosen)
            drawn: dict[str, list[int]] = {}
            for part, k in (("support", self.k), ("query", self.query_k)):
                support_numbers = frozenset(drawn.get("support", ()))
                drawn[part], counts = self._draw(candidates, chosen, k, support_numbers, rng)
                label = min(counts, key=counts.__getitem__)
                if counts[label] < k:
                    short = f"{k} spans of {label!r} for the {part}, and the last draw reached {counts[label]}"
                    break
            else:
                support, query = (tuple(self._corpus.sentences[i] for i in part) for part in drawn.values())
                return Episode(SupportSet(tuple(chosen), support), query)
        raise EpisodeError(
            f"no episode found in {ATTEMPTS} draws: it needs {short}, since too few sentences have that "
            "label without labels from outside the episode; ask for fewer shots or more labels"
        )

    def _draw(
        self,
        candidates: Sequence[int],
        chosen: Sequence[str],
        k: int,
        excluded: frozenset[int],
        rng: random.Random,
    ) -> tuple[list[int], dict[str, int]]:
        """Draw unused sentences by the rule; return them and their number of spans of each label.

        Counts only grow, so a rejected sentence stays rejected. One pass over the candidates in random order is
        therefore equivalent to repeated drawing, and it terminates.
        """
        counts = dict.fromkeys(chosen, 0)
        missing = len(counts)  # labels that are below k
        drawn: list[int] = []
        for index in _shuffled(candidates, rng):
            if not missing:
                break
            added = self._corpus.counts[index]
            helps = False
            for label, count in added.items():
                if counts[label] + count > 2 * k:
                    helps = False
                    break
                helps = helps or counts[label] < k
            if not helps or index in excluded:
                continue
            for label, count in added.items():
                missing -= counts[label] < k <= counts[label] + count
                counts[label] += count
            drawn.append(index)
        return drawn, counts


class MinimumIncludingSampler:
    """Hou et al., Few-shot Slot Tagging with Collapsed Dependency Transfer, 2020: minimum-including K-shot.

    Every label of the domain has at least ``k`` spans in the support, and no sentence can be removed without
    violating that. The query has ``query_size`` other sentences.

    Departures: the rule is followed strictly, while most of the released SNIPS episodes have a support sentence that
    could be removed; sentences with the same words count as one.
    """

    def __init__(self, sentences: Iterable[Sentence], k: int, query_size: int, domain: str = "") -> None:
        _at_least_one(k=k, query_size=query_size)
        self.k, self.query_size, self.domain = k, query_size, domain
        self._corpus = Corpus.of(sentences)
        self.labels = tuple(self._corpus.by_label)
        if not self.labels:
            raise EpisodeError("no sentence has a labelled span; there is nothing to draw a support set from")
        for label, count in self._corpus.spans_per_label().items():
            if count < k:
                raise EpisodeError(f"label {label!r} has {count} spans; a {k}-shot support needs {k}")

    def sample(self, rng: random.Random, labels: Sequence[str] | None = None) -> Episode:
        """Sample an episode of all labels, or of the given ones from sentences without other labels."""
        chosen = sorted(labels or self.labels)
        candidates = self._corpus.within(chosen)
        support = self._minimal(self._including(chosen, rng), chosen, rng)
        support_numbers = set(support)
        query: list[int] = []
        for index in _shuffled(candidates, rng):
            if len(query) == self.query_size:
                break
            if index not in support_numbers:
                query.append(index)
        if len(query) < self.query_size:
            raise EpisodeError(
                f"the query needs {self.query_size} sentences; {len(query)} are left beside a support of "
                f"{len(support)}; ask for a smaller query or add sentences"
            )
        at = self._corpus.sentences.__getitem__
        return Episode(SupportSet(tuple(chosen), tuple(map(at, support))), tuple(map(at, query)), self.domain)

    def _including(self, chosen: Sequence[str], rng: random.Random) -> list[int]:
        """Return sentences with at least ``k`` spans of every label, possibly more sentences than needed."""
        counts = dict.fromkeys(chosen, 0)
        drawn: set[int] = set()
        having = {label: self._corpus.by_label.get(label, []) for label in chosen}
        for label in sorted(chosen, key=lambda name: len(having[name])):  # rare labels first
            for index in _shuffled(having[label], rng):
                if counts[label] >= self.k:
                    break
                if index in drawn or not self._corpus.counts[index].keys() <= counts.keys():
                    continue
                drawn.add(index)
                for name, count in self._corpus.counts[index].items():
                    counts[name] += count
            if counts[label] < self.k:
                raise EpisodeError(
                    f"label {label!r} has {counts[label]} spans in sentences without labels from outside "
                    f"the episode; a {self.k}-shot support needs {self.k}"
                )
        return sorted(drawn)

    def _minimal(self, drawn: list[int], chosen: Sequence[str], rng: random.Random) -> list[int]:
        """Remove the sentences that are not needed, in random order.

        Counts only fall, so a sentence that is needed stays needed: one pass is enough.
        """
        counts = {label: sum(self._corpus.counts[i].get(label, 0) for i in drawn) for label in chosen}
        necessary = []
        for index in _shuffled(drawn, rng):
            label_counts = self._corpus.counts[index]
            if all(counts[label] - count >= self.k for label, count in label_counts.items()):
                for label, count in label_counts.items():
                    counts[label] -= count
            else:
                necessary.append(index)
        return necessary
