"""Measure the throughput of `Tagger.pipe`: words per second and core, in float32 and int8, and memory over a stream.

    python benchmarks/bench_stream.py                         10,000 sentences
    python benchmarks/bench_stream.py --sentences 100000
    python benchmarks/bench_stream.py --beside OLD/bin/python --beside-source OLD/src

With `--beside`, another version of spanshot, in an environment of its own, tags the same sentences. All versions run
as processes with one thread each and take turns, so that they meet the same conditions. Times are CPU times.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench_text import random_sentence
from rich.console import Console
from rich.table import Table

from spanshot.types import Sentence

EXAMPLES = 25
LABELS = 5
TURN = 250
"""Sentences that a process tags before the next one has its turn."""
WORKER = """
import json, resource, sys, time
import spanshot
task = json.loads(sys.stdin.readline())
if task["dtype"] == "other":
    tagger = spanshot.learn(task["examples"])
else:
    from spanshot.model import embedded_model
    tagger = embedded_model(dtype=task["dtype"]).learn(task["examples"])
list(tagger.pipe(task["warm_up"]))
for line in sys.stdin:
    started = time.process_time()
    entities = sum(map(len, tagger.pipe(json.loads(line))))
    seconds = time.process_time() - started
    try:
        with open("/proc/self/statm") as status:
            memory = int(status.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"seconds": seconds, "memory": memory, "entities": entities}), flush=True)
"""


@dataclass
class Worker:
    """A process that tags, and what it has measured."""

    name: str
    process: subprocess.Popen[str]
    seconds: float = 0.0
    memory: list[float] = field(default_factory=list)
    """Memory after each turn, in MB."""

    @classmethod
    def start(cls, name: str, dtype: str, python: str = sys.executable, source: str = "") -> Worker:
        """Start a process that learns the examples."""
        one_thread = {"OMP_NUM_THREADS": "1", "SPANSHOT_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment = os.environ | one_thread | ({"PYTHONPATH": source} if source else {})
        pipe = subprocess.PIPE
        process = subprocess.Popen([python, "-c", WORKER], stdin=pipe, stdout=pipe, text=True, env=environment)
        worker = cls(name, process)
        rng = random.Random(1)
        examples = [_marked(random_sentence(rng, LABELS)) for _ in range(EXAMPLES)]
        worker.send({"dtype": dtype, "examples": examples, "warm_up": next(texts(32, 32))})
        return worker

    def send(self, request: object) -> None:
        """Send a line to the process."""
        assert self.process.stdin is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)

    def tag(self, batch: Sequence[str]) -> None:
        """Tag texts and note time and memory."""
        self.send(batch)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: the process has ended")
        reply = json.loads(line)
        self.seconds += reply["seconds"]
        self.memory.append(reply["memory"])

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--dtypes", nargs="*", default=["float32", "int8"])
    parser.add_argument("--beside", metavar="PYTHON", help="the Python of an environment with another version")
    parser.add_argument("--beside-source", metavar="FOLDER", default="", help="where that version's package is")
    options = parser.parse_args()
    workers = [Worker.start(dtype, dtype) for dtype in options.dtypes]
    if options.beside:
        workers.append(Worker.start("other version", "other", options.beside, options.beside_source))
    words = 0
    for batch in texts(options.sentences, TURN):
        words += sum(text.count(" ") + 1 for text in batch)
        for worker in workers:
            worker.tag(batch)
    for worker in workers:
        worker.stop()
    show(workers, options.sentences, words)


def show(workers: Sequence[Worker], sentences: int, words: int) -> None:
    """Print a table. Ratios are to the last row."""
    table = Table(title=f"pipe over {sentences:,} sentences ({words:,} words), one thread, CPU time")
    for column in ("version", "words/s", "sentences/s", "ratio", "MB, tenth by tenth"):
        table.add_column(column, justify="left" if column == "version" else "right")
    for worker in workers:
        step = max(1, len(worker.memory) // 10)
        peaks = [max(worker.memory[at : at + step]) for at in range(0, len(worker.memory), step)][:10]
        table.add_row(
            worker.name,
            f"{words / worker.seconds:,.0f}",
            f"{sentences / worker.seconds:,.0f}",
            f"{workers[-1].seconds / worker.seconds:.2f}",
            " ".join(f"{peak:.0f}" for peak in peaks),
        )
    Console(width=140).print(table)


def texts(count: int, turn: int) -> Iterator[list[str]]:
    """Yield random texts, some at a time."""
    rng = random.Random(3)
    for begin in range(0, count, turn):
        yield [" ".join(random_sentence(rng, LABELS).words) for _ in range(min(turn, count - begin))]


def _marked(sentence: Sentence) -> str:
    """Return a sentence with its spans, which are single words, as inline markup."""
    words = list(sentence.words)
    for span in sentence.spans:
        words[span.start] = f"[{words[span.start]}]({span.label})"
    return " ".join(words)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
