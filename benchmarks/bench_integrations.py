"""Measure integrations against bare `Tagger.pipe` on the same texts: a Parquet file, and a spaCy pipeline.

    python benchmarks/bench_integrations.py parquet                   200,000 rows, beside bare pipe in another process
    python benchmarks/bench_integrations.py parquet --kills 20        kill the job at random moments and resume it
    python benchmarks/bench_integrations.py spacy                     10,000 texts; blocks take turns

Times are CPU times of one thread. Needs the extras [tables] and [spacy].
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench_text import COMMON, NAMES

EXAMPLES = [
    "they left [Paris](place) for [Rome](place) after the season .",
    "[Lovelace](person) was the first in her city .",
    "the company [Nokia](company) played in [Oslo](place) .",
    "his team at [Siemens](company) met [Turing](person) .",
]
TURN = 500
"""Texts of a block before the other system has its turn."""
PIPE = """
import resource, sys, time
import pyarrow.parquet as parquet
import spanshot
tagger = spanshot.load(sys.argv[1])
texts = parquet.read_table(sys.argv[2])["text"].to_pylist()
list(tagger.pipe(texts[:500]))
started = time.process_time()
entities = sum(map(len, tagger.pipe(texts)))
print(time.process_time() - started, entities)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    table = commands.add_parser("parquet")
    table.add_argument("--rows", type=int, default=200_000)
    table.add_argument("--kills", type=int, default=0)
    pipeline = commands.add_parser("spacy")
    pipeline.add_argument("--texts", type=int, default=10_000)
    options = parser.parse_args()
    os.environ |= {"SPANSHOT_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if options.command == "spacy":
        compare_spacy(options.texts)
    else:
        with tempfile.TemporaryDirectory() as folder:
            compare_parquet(Path(folder), options.rows, options.kills)


def texts(count: int) -> list[str]:
    """Return random texts of 4 to 12 words, some of them names."""
    rng = random.Random(5)
    return [
        " ".join(rng.choice(NAMES if rng.random() < 0.15 else COMMON) for _ in range(rng.randint(4, 12)))
        for _ in range(count)
    ]


def compare_parquet(folder: Path, rows: int, kills: int) -> None:
    """Tag a Parquet file by the command line and, at the same time, its texts by bare `pipe`."""
    import pyarrow as pa
    from pyarrow import parquet

    import spanshot

    tagger, source, output = folder / "tagger", folder / "data.parquet", folder / "tagged.parquet"
    spanshot.learn(EXAMPLES).save(tagger)
    parquet.write_table(pa.table({"number": list(range(rows)), "text": texts(rows)}), source, row_group_size=10_000)
    command = [sys.executable, "-m", "spanshot", "tag", "-m", str(tagger), "-i", str(source)]
    command += ["--column", "text", "-o", str(output), "--resume"]
    bare = subprocess.Popen([sys.executable, "-c", PIPE, str(tagger), str(source)], stdout=subprocess.PIPE, text=True)
    seconds, peaks, killed = run_killed(command, kills, expected=rows * 8 / 2000)
    answer, _ = bare.communicate()
    bare_seconds, entities = float(answer.split()[0]), int(answer.split()[1])
    tagged = parquet.read_table(output)
    numbers, columns = tagged["number"].to_pylist(), tagged["entities"].to_pylist()
    print(f"rows {len(numbers):,}, each once and in order: {numbers == list(range(rows))}")
    print(f"entities {sum(map(len, columns)):,}, of bare pipe {entities:,}; killed {killed} times")
    print(f"CPU seconds {seconds:.0f}, of bare pipe {bare_seconds:.0f}: throughput {bare_seconds / seconds:.2f}")
    print("memory in MB, over time: " + " ".join(f"{peak:.0f}" for peak in peaks))


def run_killed(command: Sequence[str], kills: int, expected: float) -> tuple[float, list[float], int]:
    """Run a command to its end, killing it at random moments; return CPU time, memory over time and kills."""
    rng = random.Random(7)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory: list[float] = []
    killed = 0
    while True:
        process = subprocess.Popen(command)
        moment = rng.uniform(1, 2 * expected / kills) if killed < kills else float("inf")
        began = time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            memory.append(_memory(process.pid))
            if time.monotonic() - began > moment and process.poll() is None:
                process.kill()
                process.wait()
                killed += 1
                break
        if process.returncode == 0:
            break
        if process.returncode > 0:
            raise SystemExit(f"the job ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    step = max(1, len(memory) // 10)
    peaks = [max(memory[at : at + step]) for at in range(0, len(memory), step)][:10]
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peaks, killed


def _memory(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * resource.getpagesize() / 1e6


def compare_spacy(count: int) -> None:
    """Tag blocks of texts by `nlp.pipe` and by `Tagger.pipe`, in turn."""
    import spacy

    import spanshot

    nlp = spacy.blank("en")
    nlp.add_pipe("spanshot", config={"examples": EXAMPLES})
    tagger = spanshot.learn(EXAMPLES)
    many = texts(count)
    list(nlp.pipe(many[:100]))
    list(tagger.pipe(many[:100]))
    ratios = []
    totals = [0.0, 0.0]
    for begin in range(0, count, TURN):
        block = many[begin : begin + TURN]
        started = time.process_time()
        list(tagger.pipe(block))
        between = time.process_time()
        list(nlp.pipe(block))
        times = (between - started, time.process_time() - between)
        totals = [total + seconds for total, seconds in zip(totals, times, strict=True)]
        ratios.append(times[0] / times[1])
    print(f"{count:,} texts: CPU seconds of bare pipe {totals[0]:.1f}, of nlp.pipe {totals[1]:.1f}")
    print(f"throughput {totals[0] / totals[1]:.2f} of bare pipe (median of the blocks {statistics.median(ratios):.2f})")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
