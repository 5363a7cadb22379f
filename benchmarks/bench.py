"""Measure the cost of ESD relative to the bare encoder: medians of the ratios of interleaved timings.

    make bench                 a table
    python benchmarks/bench.py --json

Sentences are random words with the lengths of Few-NERD, so no download is needed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from rich.console import Console
from rich.table import Table

from spanshot.allocator import keep_memory
from spanshot.decode.conflicts import FLAT, NESTED
from spanshot.research.learning.method import evaluating
from spanshot.research.methods.esd import Esd
from spanshot.research.nn.pretrained import load_pretrained, set_dropout
from spanshot.types import Episode, ScoredSpan, Sentence, Span, SupportSet

WORDS_PER_SENTENCE = (24.5, 11.0)
"""Mean and standard deviation in Few-NERD."""
MOST_O_SPANS = 150
"""As in the minilm configs."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    keep_memory()
    method = Esd(load_pretrained(options.encoder, freeze_embeddings=True), Esd.Settings(o_spans=MOST_O_SPANS))
    set_dropout(method.encoder, 0.1, 0.0)
    rows = [
        training_row(method, options.rounds),
        *(tagging_row(method, ways, shots, batch, options.rounds)
          for ways, shots in ((5, 1), (10, 5)) for batch in (1, 16)),
        *(decoding_row(name, resolver, count)
          for name, resolver in (("flat", FLAT), ("nested", NESTED)) for count in (10, 40, 150)),
    ]  # fmt: skip
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)


def training_row(method: Esd, rounds: int) -> dict[str, object]:
    """Time the loss and gradients of an episode, relative to the encoder alone on the same sentences."""
    method.train()
    episode = random_episode(random.Random(1), ways=5, shots=1, queries=5)
    sentences = [*episode.support.sentences, *episode.query]

    def bare() -> None:
        words = method.encoder(sentences)
        (words.first.sum() + words.last.sum()).backward()

    def with_method() -> None:
        method.episode_loss(episode).backward()

    return row("training step, 5-way 1-shot", *interleaved(bare, with_method, rounds), aim=1.4)


def tagging_row(method: Esd, ways: int, shots: int, batch: int, rounds: int) -> dict[str, object]:
    """Time tagging with a learned support set, relative to the encoder's forward pass."""
    method.eval()
    episode = random_episode(random.Random(2), ways=ways, shots=shots, queries=batch)
    tagger = method.fit(episode.support)

    def bare() -> None:
        with evaluating(method):
            method.encoder(episode.query)

    def with_method() -> None:
        tagger(episode.query)

    name = f"tagging, {ways}-way {shots}-shot, {batch} at a time"
    return row(name, *interleaved(bare, with_method, 2 * rounds), aim=1.5 if shots == 1 else 2.5)


def decoding_row(name: str, resolver: Callable[[Sequence[ScoredSpan]], object], count: int) -> dict[str, object]:
    """Time Beam Soft-NMS on ``count`` random candidates of a 30-word sentence."""
    rng = random.Random(3)
    sentences = []
    for _ in range(50):
        bounds = [(s, e) for s in range(30) for e in range(s + 1, min(s + 8, 30) + 1)]
        chosen = rng.sample(bounds, count)
        sentences.append([ScoredSpan(Span(s, e, rng.choice("ABCDE")), rng.uniform(0.2, 1)) for s, e in chosen])
    times = []
    for candidates in sentences:
        started = time.perf_counter()
        resolver(candidates)
        times.append(time.perf_counter() - started)
    median = statistics.median(times)
    return {"what": f"Beam Soft-NMS ({name}), {count} candidates", "milliseconds": median * 1e3,
            "aim": "< 1 ms" if (name, count) == ("flat", 40) else ""}  # fmt: skip


def interleaved(bare: Callable[[], None], with_method: Callable[[], None], rounds: int) -> tuple[float, float, float]:
    """Return the medians of both and of their ratio, from alternating timings."""
    for warm_up in (bare, with_method, bare, with_method):
        warm_up()
    times = [(_timed(bare), _timed(with_method)) for _ in range(rounds)]
    ratio = statistics.median(w / b for b, w in times)
    return statistics.median(b for b, _ in times), statistics.median(w for _, w in times), ratio


def _timed(action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def row(name: str, bare: float, with_method: float, ratio: float, aim: float) -> dict[str, object]:
    """Return a row of the table."""
    return {"what": name, "bare_milliseconds": bare * 1e3, "milliseconds": with_method * 1e3, "ratio": ratio,
            "aim": f"≤ {aim}"}  # fmt: skip


def random_episode(rng: random.Random, ways: int, shots: int, queries: int) -> Episode:
    """Return an episode of common words with short entities, ``shots`` of each label."""
    labels = [f"label{number}" for number in range(ways)]
    support = tuple(random_sentence(rng, label) for label in labels for _ in range(shots))
    return Episode(SupportSet.of(support), tuple(random_sentence(rng, rng.choice(labels)) for _ in range(queries)))


def random_sentence(rng: random.Random, label: str) -> Sentence:
    """Return a sentence with one entity of one to three words."""
    length = max(6, round(rng.gauss(*WORDS_PER_SENTENCE)))
    words = tuple(rng.choice(COMMON_WORDS) for _ in range(length))
    start = rng.randrange(length - 3)
    return Sentence(words, (Span(start, start + rng.randint(1, 3), label),))


def show(rows: Sequence[dict[str, object]]) -> None:
    """Print the rows as a table."""
    table = Table(title=f"spanshot, {torch.get_num_threads()} threads")
    for column in ("what", "bare encoder, ms", "ESD, ms", "ratio", "aim"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for values in rows:
        names = ("what", "bare_milliseconds", "milliseconds", "ratio", "aim")
        cells = [values.get(name) for name in names]
        table.add_row(*(f"{cell:.2f}" if isinstance(cell, float) else str(cell or "") for cell in cells))
    Console(width=110).print(table)


COMMON = (
    "the of and in to was is for as on with by he at from his an were are which this also has or had first their "
    "after its new who they two her she been other when time during there into school all one more university city "
    "world year national team played season film company government river station music award building district "
    "restoration championship Wilhelmina Bradford Tchaikovsky Queensland Northumberland infrastructure 1987 2003 , ."
)
COMMON_WORDS = COMMON.split()

if __name__ == "__main__":
    main()
