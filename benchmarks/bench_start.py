"""Measure the cold start: the CPU time of `spanshot tag` in a fresh process. Needs the base install.

    python benchmarks/bench_start.py
    python benchmarks/bench_start.py --beside OLD/bin/python --beside-source OLD/src

With `--beside`, another version of spanshot, in an environment of its own, takes turns with this one, so that both meet
the same conditions.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

EXAMPLES = Path(__file__).parents[1] / "examples" / "founders.txt"
IMPORT = ["-c", "import spanshot"]
TAG = ["-m", "spanshot", "tag", "-e", str(EXAMPLES), "Grace Hopper left Oslo."]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beside", metavar="PYTHON", help="the Python of an environment with another version")
    parser.add_argument("--beside-source", metavar="FOLDER", default="", help="where that version's package is")
    options = parser.parse_args()
    versions = {"this version": (sys.executable, "")}
    if options.beside:
        versions["other version"] = (options.beside, options.beside_source)
    table = Table(title=f"CPU seconds in a fresh process, one thread, median of {options.rounds}")
    for column in ("what", *versions, *(["ratio"] if options.beside else [])):
        table.add_column(column, justify="left" if column == "what" else "right")
    for what, command in (("import spanshot", IMPORT), ("spanshot tag, 8 examples", TAG)):
        rounds = [
            [seconds([python, *command], source) for python, source in versions.values()]
            for _ in range(options.rounds + 1)
        ][1:]  # the first round reads the files from the disk
        medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
        ratio = [f"{statistics.median(new / old for new, old in rounds):.2f}"] if options.beside else []
        table.add_row(what, *(f"{median:.2f}" for median in medians), *ratio)
    Console(width=100).print(table)


def seconds(command: Sequence[str], source: str) -> float:
    """Return the CPU time of a command."""
    one_thread = {"OMP_NUM_THREADS": "1", "SPANSHOT_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment = os.environ | one_thread | ({"PYTHONPATH": source} if source else {})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
