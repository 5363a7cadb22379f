"""Table and figure: F1 with a growing number of example texts, on held-out corpora.

For each of several random draws, the tagger learns the first 5, 10, … example texts and tags the same test texts. All
labels of the largest set of examples count, so a label that is not among the examples yet counts as missed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

from spanshot.errors import DataError
from spanshot.research.corpora.genia import read_genia
from spanshot.research.experiments.ledger import Ledger, Row, markdown
from spanshot.research.experiments.raw_text import Outcome, TextEpisode, TextExample, compare
from spanshot.research.experiments.systems import System
from spanshot.types import Sentence

KEYS = ("corpus", "system", "draw", "size")
SIZES = (5, 10, 25, 50, 100, 200)
TEST_TEXTS = 300
LONGEST = 100
"""Maximum length of a text, in words; longer ones are not used."""
BLOCKS = 30
"""Counts are kept for blocks of test texts, for intervals."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One random order of example texts of a corpus, and the texts to tag."""

    number: int
    examples: tuple[TextExample, ...]
    test: tuple[TextExample, ...]

    def episode(self, size: int) -> TextEpisode:
        """Return the episode with the first examples."""
        support = self.examples[:size]
        example_labels = {mark.label for example in self.examples for mark in example.marks}
        test = [TextExample(t.text, frozenset(m for m in t.marks if m.label in example_labels)) for t in self.test]
        labels = sorted({mark.label for example in support for mark in example.marks})
        return TextEpisode(tuple(labels), support, tuple(test))


def draws(path: Path, count: int, sizes: Sequence[int] = SIZES, seed: int = 0) -> Iterator[Draw]:
    """Draw example texts and test texts from a corpus of JSON lines with tokens and entities."""
    sentences: list[Sentence] = [sentence for sentence in read_genia(path) if len(sentence) <= LONGEST]
    if len(sentences) < TEST_TEXTS + sizes[-1]:
        raise DataError(f"{path}: growth curves need {TEST_TEXTS + sizes[-1]} sentences; found {len(sentences)}")
    rng = random.Random(seed)
    texts = [TextExample.of(sentence) for sentence in sentences]
    rng.shuffle(texts)
    test, pool = texts[:TEST_TEXTS], texts[TEST_TEXTS:]
    for number in range(count):
        yield Draw(number, tuple(rng.sample(pool, sizes[-1])), tuple(test))


def measure(
    ledger: Ledger,
    corpus: Path,
    systems: Mapping[System, Sequence[int]],
    count: int,
    watch: Callable[[str], None],
) -> None:
    """Measure each system with its numbers of examples; skip rows in the ledger."""
    for draw in draws(corpus, count):
        for system, sizes in systems.items():
            for size in sizes:
                row: Row = {"corpus": corpus.stem, "system": system.name, "draw": draw.number, "size": size}
                row["identity"] = system.identity
                if ledger.has(row, "identity"):
                    continue
                ledger.add({**row, **_figures(system, draw.episode(size))})
                watch(f"{corpus.stem}, {system.name}, draw {draw.number}, {size} examples")


def _figures(system: System, episode: TextEpisode) -> Row:
    if not episode.labels:  # none of the first examples contains an entity
        outcomes = compare(episode, [[] for _ in episode.query])
        seconds = 0.0
    else:
        began = time.process_time()
        tag = system.learn(episode.labels, episode.support)
        seconds = time.process_time() - began
        outcomes = compare(episode, tag([example.text for example in episode.query]))
    parts = [sum(outcomes[block::BLOCKS], Outcome()) for block in range(BLOCKS)]
    return {
        "tp": [part.tp for part in parts],
        "fp": [part.fp for part in parts],
        "fn": [part.fn for part in parts],
        "seconds_to_learn": round(seconds, 3),
    }


@dataclass(frozen=True, slots=True)
class Curve:
    """The counts of a system on a corpus. ``counts[size]`` is [draws, blocks, 3]: tp, fp, fn."""

    corpus: str
    system: str
    counts: dict[int, np.ndarray]
    seconds: dict[int, list[float]]

    def f1(self, size: int) -> list[float]:
        """Return the F1 of each draw, in percent."""
        return [float(value) for value in f1_of(self.counts[size].sum(1))]

    def drops(self, resamples: int = 2000, seed: int = 0) -> list[tuple[int, int, float]]:
        """Return pairs of sizes between which F1 falls significantly, with the difference.

        Draws and blocks of test texts are resampled, the same for both sizes; the 95 % interval must lie below 0.
        """
        rng = np.random.default_rng(seed)
        sizes = sorted(self.counts)
        results = []
        draws, blocks = self.counts[sizes[0]].shape[:2]
        chosen = rng.integers(draws, size=(resamples, draws))
        parts = rng.integers(blocks, size=(resamples, blocks))
        sampled = {
            size: f1_of(counts[chosen[:, :, None], parts[:, None, :]].sum(2)).mean(1)
            for size, counts in self.counts.items()
        }
        for place, small in enumerate(sizes):
            for large in sizes[place + 1 :]:
                if np.quantile(sampled[large] - sampled[small], 0.975) < 0:
                    results.append((small, large, fmean(self.f1(large)) - fmean(self.f1(small))))
        return results


def f1_of(counts: np.ndarray) -> np.ndarray:
    """Return F1 in percent of counts [..., 3]: tp, fp, fn.

    >>> f1_of(np.array([[1, 1, 1], [0, 0, 0]])).tolist()
    [50.0, 0.0]
    """
    right = counts[..., 0].astype(float)
    total = 2 * right + counts[..., 1] + counts[..., 2]
    return np.asarray(200 * np.divide(right, total, out=np.zeros_like(right), where=total > 0))


def curves(rows: Iterable[Row]) -> list[Curve]:
    """Collect the rows of a ledger by corpus and system."""
    by_key: dict[tuple[str, str], Curve] = {}
    lists: dict[tuple[str, str, int], list[list[object]]] = {}
    for row in rows:
        key = str(row["corpus"]), str(row["system"])
        curve = by_key.setdefault(key, Curve(*key, {}, {}))
        size = int(str(row["size"]))
        lists.setdefault((*key, size), []).append([row["tp"], row["fp"], row["fn"]])
        curve.seconds.setdefault(size, []).append(float(str(row["seconds_to_learn"])))
    for (corpus, system, size), counts in lists.items():
        by_key[corpus, system].counts[size] = np.array(counts).transpose(0, 2, 1)
    return list(by_key.values())


def tables(rows: Iterable[Row]) -> str:
    """Return mean F1 by corpus and number of examples, the drops, and the time to learn."""
    by_key = curves(rows)
    sizes = sorted({size for curve in by_key for size in curve.counts})
    lines = [
        [curve.corpus, curve.system]
        + [
            f"{fmean(curve.f1(size)):.1f} ± {np.std(curve.f1(size), ddof=1) if len(curve.f1(size)) > 1 else 0:.1f}"
            if size in curve.counts
            else ""
            for size in sizes
        ]
        + [", ".join(f"{a} to {b}: {change:.1f}" for a, b, change in curve.drops()) or "none"]
        for curve in by_key
    ]
    seconds = [
        [curve.corpus, curve.system, *(f"{median(curve.seconds[s]):.2f}" if s in curve.seconds else "" for s in sizes)]
        for curve in by_key
    ]
    header = ["corpus", "system", *map(str, sizes)]
    return (
        f"{markdown([*header, 'significant drops'], lines)}\n\nCPU seconds to learn:\n\n{markdown(header, seconds)}\n"
    )
