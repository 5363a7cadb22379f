"""Measure how long a fast device waits for episodes, without and with worker processes. Needs the extra [train].

python benchmarks/bench_prefetch.py                                         generated corpora
python benchmarks/bench_prefetch.py many/linear-minilm data.folder=FOLDER   the corpus of a config

A pause stands in for the step of a device: like a GPU, it leaves the processor free. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spanshot.research.configs import find_config
from spanshot.research.corpora.many import ManyCorpora
from spanshot.research.corpora.source import Source
from spanshot.research.training.drawing import Draws, EpisodeWorkers, in_process
from spanshot.research.training.settings import RunSettings

CORPORA, SENTENCES, LABELS, WORDS = 10, 2_000, 20, 4_000
WARM_UP = 10
"""Steps before the measurement."""


@dataclass(frozen=True)
class Waiting:
    """How long a device waited for the items of a step."""

    mean: float
    longest: float
    share: float
    """Of the time of all steps, with waiting."""


def main() -> None:
    """Parse the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", nargs="?", help="config with the corpus (default: generated corpora)")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings to change")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=float, nargs="+", default=[5.0, 20.0, 50.0], help="durations in milliseconds")
    parser.add_argument("--batch", type=int, default=4, help="episodes or pools per step")
    parser.add_argument("--count", type=int, default=100, help="number of steps")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = (
            RunSettings.read(find_config(options.config), options.settings).data
            if options.config
            else generated(Path(folder))
        )
        print(f"{os.cpu_count()} cores, {options.count} steps of {options.batch} items, {type(source).__name__}\n")
        print("| workers | step | mean wait | longest wait | idle |")
        print("| ---: | ---: | ---: | ---: | ---: |")
        for count in options.workers:
            with draws_of(source, count) as draws:
                for step in options.steps:
                    waiting = measure(draws, step / 1e3, options.count, options.batch)
                    waits = f"{waiting.mean * 1e3:.2f} ms | {waiting.longest * 1e3:.1f} ms"
                    print(f"| {count} | {step:g} ms | {waits} | {waiting.share:.0%} |", flush=True)


@contextmanager
def draws_of(source: Source, count: int) -> Iterator[Draws]:
    """Draw in this process, or by workers that end with the block."""
    if not count:
        yield in_process(source.training())
        return
    workers = EpisodeWorkers(source, count)
    try:
        workers.wait()
        yield workers
    finally:
        workers.close()


def measure(draws: Draws, seconds: float, count: int, batch: int) -> Waiting:
    """Take steps of ``seconds`` and measure the time between them."""
    drawn = draws(f"{seconds}/{number}" for number in range((WARM_UP + count) * batch))
    waits, started = list[float](), 0.0
    for step in range(WARM_UP + count):
        if step == WARM_UP:
            waits, started = [], time.perf_counter()
        before = time.perf_counter()
        for _ in range(batch):
            next(drawn)
        waits.append(time.perf_counter() - before)
        time.sleep(seconds)
    return Waiting(statistics.mean(waits), max(waits), sum(waits) / (time.perf_counter() - started))


def generated(folder: Path) -> ManyCorpora:
    """Write corpora of random words and return a source of pools of episodes, as the packaged model is trained on."""
    rng = random.Random(1)
    (folder / "corpora").mkdir()
    for corpus in range(CORPORA):
        records = (record(rng, corpus) for _ in range(SENTENCES))
        (folder / "corpora" / f"corpus{corpus}.jsonl").write_text("".join(records), encoding="utf-8")
    return ManyCorpora(folder=str(folder))


def record(rng: random.Random, corpus: int) -> str:
    """Return a line with a sentence of 5 to 30 words that has up to two entities."""
    words = [f"word{rng.randrange(WORDS)}" for _ in range(rng.randint(5, 30))]
    starts = sorted(rng.sample(range(0, len(words) - 1, 2), rng.randint(0, 2)))
    entities = [
        {"start": start, "end": start + rng.randint(1, 2), "type": f"label {corpus} {rng.randrange(LABELS)}"}
        for start in starts
    ]
    return json.dumps({"tokens": words, "entities": entities}) + "\n"


if __name__ == "__main__":
    main()
