"""Table: F1 when texts are annotated in a suggested order, against random order.

The corpus acts as the annotator: a chosen text gets its gold entities. The names of the labels are known from the
start. After every few texts the tagger learns again from all annotated texts and reorders the rest.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from spanshot.research.experiments.growth import draws
from spanshot.research.experiments.ledger import Ledger, Row, markdown
from spanshot.research.experiments.raw_text import Outcome, TextEpisode, TextExample, compare
from spanshot.tagger import Tagger

KEYS = ("corpus", "order", "draw", "annotated")
STOPS = (5, 10, 20, 40)
STEP = 5
"""Number of texts annotated per round."""
Order = Callable[[Tagger, Sequence[str]], Sequence[int]]
"""Returns positions of texts, those most worth annotating first."""
Learn = Callable[[Sequence[str], Sequence[TextExample]], Tagger]
"""Learns labels, given by name, from annotated texts; there may be none."""


def annotate(
    labels: Sequence[str], pool: Sequence[TextExample], learn: Learn, order: Order, limit: int
) -> Iterable[list[TextExample]]:
    """Yield the annotated texts after each round, until there are ``limit``."""
    annotated: list[TextExample] = []
    unmarked = list(pool)
    while unmarked and len(annotated) < limit:
        tagger = learn(labels, annotated)
        chosen = list(order(tagger, [example.text for example in unmarked]))[:STEP]
        annotated += [unmarked[place] for place in chosen]
        unmarked = [example for place, example in enumerate(unmarked) if place not in set(chosen)]
        yield list(annotated)


def random_order(seed: int) -> Order:
    """Return an order that ignores the tagger."""
    rng = random.Random(seed)
    return lambda _, texts: rng.sample(range(len(texts)), len(texts))


def suggested_order(_: int) -> Order:
    """Return the order in which the tagger suggests texts."""
    return lambda tagger, texts: [suggestion.position for suggestion in tagger.suggest(texts, STEP)]


def measure(
    ledger: Ledger,
    corpus: Path,
    orders: dict[str, Callable[[int], Order]],
    learn: Learn,
    identity: str,
    count: int,
    watch: Callable[[str], None],
) -> None:
    """Measure each order on several draws of a pool of texts; skip draws in the ledger.

    ``identity`` stands for the weights of the model; figures of other weights are measured again.
    """
    for draw in draws(corpus, count):
        labels = sorted({mark.label for example in draw.examples for mark in example.marks})
        for name, new_order in orders.items():
            row: Row = {"corpus": corpus.stem, "order": name, "draw": draw.number, "identity": identity}
            if ledger.has({**row, "annotated": STOPS[-1]}, "identity"):
                continue
            for annotated in annotate(labels, draw.examples, learn, new_order(draw.number), STOPS[-1]):
                if len(annotated) in STOPS:
                    episode = TextEpisode(tuple(labels), tuple(annotated), draw.episode(len(draw.examples)).query)
                    tagged = learn(labels, annotated).pipe(example.text for example in episode.query)
                    total = sum(compare(episode, tagged), Outcome())
                    ledger.add({**row, "annotated": len(annotated), "f1": round(total.f1, 2)})
                    watch(f"{corpus.stem}, {name}, draw {draw.number}, {len(annotated)} annotated: F1 {total.f1:.1f}")


def tables(rows: Iterable[Row]) -> str:
    """Return mean F1 by corpus, order and number of annotated texts."""
    pooled: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row in rows:
        by_count = pooled.setdefault((str(row["corpus"]), str(row["order"])), {})
        by_count.setdefault(int(str(row["annotated"])), []).append(float(str(row["f1"])))
    lines = [
        [corpus, order, *(f"{fmean(by_count[stop]):.1f}" if stop in by_count else "" for stop in STOPS)]
        for (corpus, order), by_count in sorted(pooled.items())
    ]
    return markdown(["corpus", "order", *(f"{stop} annotated" for stop in STOPS)], lines)
