"""What a user of raw text waits for: import, learning, tagging, and whether memory stays flat over a long stream.

    make bench                                    a table, after that of bench.py
    python benchmarks/bench_text.py --stream 100000

Speed does not depend on what a model has learned: without the package's own model, one of random weights is taken.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from bench import interleaved, random_sentence
from rich.console import Console
from rich.table import Table

from spanshot.errors import CheckpointError
from spanshot.model import Model, embedded_model
from spanshot.research.checkpoint import new_method
from spanshot.research.learning.method import evaluating
from spanshot.research.training.settings import RunSettings
from spanshot.tagger import Tagger
from spanshot.types import Sentence, SupportSet
from spanshot.words import words_of

PREPARE = """
import spanshot
def examples(count):
    return [f"flight {n} leaves [Oslo](city) on [Monday](day) with {n % 7} bags and a remark" for n in range(count)]
"""
MEMORY_PROGRAMS = {
    **{
        f"learn {count:,} examples and tag one text": f"spanshot.learn(examples({count}))('to Rome on Friday')"
        for count in (10, 100, 1000, 3000)
    },
    "learn 40 examples and one of 1,000 words": "spanshot.learn([*examples(40), '[Rome](city) ' + 'word ' * 990])",
    "tag a text of 2 MB": "spanshot.learn(examples(10))('They left Paris for Rome on Friday. ' * 58_000)",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--stream", type=int, default=2000, help="Sentences of the stream whose memory is watched.")
    options = parser.parse_args()
    model = model_at_hand()
    rng = random.Random(1)
    support = SupportSet.of(random_sentence(rng, f"label{number % 5}") for number in range(25))
    predictor = model.learn(support)
    table = Table(title=f"Raw text, {torch.get_num_threads()} threads, 25 examples of 5 labels")
    for column in ("what", "measured", "aim"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row("import spanshot", f"{import_seconds():.2f} s", "< 0.3 s")
    table.add_row("learn 25 examples", f"{median_of(lambda: model.learn(support), options.rounds):.2f} s", "< 1 s")
    for batch in (1, 32):
        speed, ratio = tagging(predictor, batch, options.rounds)
        table.add_row(f"tag, {batch} at a time", f"{speed:.0f} sentences/s, {ratio:.2f} of the bare encoder's time", "")
    peaks = stream_memory(predictor, options.stream)
    table.add_row(
        f"memory over {options.stream:,} sentences, tenth by tenth",
        f"at most {' '.join(f'{peak:.0f}' for peak in peaks)} MB",
        "flat",
    )
    practice = median_of(lambda: model.learn(support, finetune=True), 3)  # last: it leaves more memory with the process
    table.add_row("learn 25 examples with practice (finetune=True)", f"{practice:.1f} s", "")
    for name, program in MEMORY_PROGRAMS.items():
        table.add_row(f"most memory, {name}", f"{peak_memory(program):.0f} MB", "< 1,500 MB")
    Console(width=110).print(table)


def peak_memory(program: str) -> float:
    """Return the most memory of a fresh Python that runs the program, in MB."""
    measured = f"{PREPARE}{program}\nimport resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)"
    done = subprocess.run([sys.executable, "-c", measured], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def model_at_hand() -> Model:
    """The package's own model, or one of the same shape with random heads."""
    try:
        return embedded_model()
    except CheckpointError:
        settings = RunSettings.of(
            {
                "method": {"name": "esd", "o_spans": 150},
                "data": {"kind": "episodes", "train": "none", "dev": "none"},
                "encoder": {"name": "minilm"},
            }
        )
        return Model(new_method(settings).eval(), settings.model)


def texts(count: int) -> Iterator[str]:
    """Sentences of Few-NERD's lengths, as text."""
    rng = random.Random(2)
    for _ in range(count):
        yield " ".join(random_sentence(rng, "x").words)


def tagging(predictor: Tagger, batch: int, rounds: int) -> tuple[float, float]:
    """Sentences per second, and the ratio to the encoder's forward pass over the same words."""
    many = list(texts(batch))
    sentences = [Sentence(tuple(word.text for word in words_of(text))) for text in many]
    assert predictor.model is not None
    method = predictor.model.method

    def bare() -> None:
        with evaluating(method):
            method.encoder(sentences)

    def whole() -> None:
        list(predictor.pipe(many, batch))

    _, seconds, ratio = interleaved(bare, whole, 2 * rounds)
    return batch / seconds, ratio


def stream_memory(predictor: Tagger, count: int) -> list[float]:
    """The most memory that the process has in each tenth of the stream, in MB.

    It goes up and down with the lengths of the texts; what matters is whether it goes on going up.
    """
    most = [0.0] * 10
    for number, _ in enumerate(predictor.pipe(texts(count))):
        if number % 8 == 0:
            tenth = 10 * number // count
            most[tenth] = max(most[tenth], _memory())
    return most


def _memory() -> float:
    status = Path("/proc/self/statm")
    if status.is_file():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def import_seconds() -> float:
    """Of a fresh Python, beyond what Python itself takes."""
    program = "import time; t = time.perf_counter(); import spanshot; print(time.perf_counter() - t)"
    found = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in range(5)]
    return statistics.median(float(one.stdout) for one in found)


def median_of(action: Callable[[], object], rounds: int) -> float:
    """Seconds that it takes."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


if __name__ == "__main__":
    main()
