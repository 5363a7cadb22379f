"""Fuzz every reader and ``tagger(text)``: only results and ``SpanshotError`` may come out.

Inputs are made by hypothesis, which reports the smallest one that fails. With ``--atheris N``, atheris (if installed)
then tries N more inputs for each reader, guided by the code that they reach.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hypothesis import HealthCheck, given, seed, settings

from fuzz_targets import TARGETS

HERE = Path(__file__).parent
ROUND = 100


def fuzz(name: str, inputs: int, seconds: float, first_seed: int) -> int:
    """Run a target until the number of inputs or the time is used up; return the number of inputs."""
    target, count, end = TARGETS[name], 0, time.monotonic() + seconds

    def run(data: bytes) -> None:
        nonlocal count
        count += 1
        target.run(data)

    number = first_seed
    while count < inputs and time.monotonic() < end:
        options = settings(
            max_examples=min(ROUND, inputs - count),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        seed(number)(options(given(target.inputs)(run)))()
        number += 1
    return count


def main() -> None:
    """Fuzz the targets named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=12_000, help="inputs for each target (default: 12000)")
    parser.add_argument("--seconds", type=float, default=600, help="time for each target (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other inputs (default: 0)")
    parser.add_argument("--atheris", type=int, default=0, metavar="N", help="inputs for each reader by atheris")
    chosen = parser.parse_args()
    total = 0
    for name in chosen.targets:
        started = time.monotonic()
        count = fuzz(name, chosen.inputs, chosen.seconds, chosen.seed)
        total += count
        print(f"{name:14} {count:8,} inputs {time.monotonic() - started:8.0f} s", flush=True)
        if chosen.atheris and name != "tagger":
            command = [sys.executable, str(HERE / "guided.py"), name, f"-runs={chosen.atheris}", "-max_len=4096"]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            total += chosen.atheris
            print(f"{'':14} {chosen.atheris:8,} inputs by atheris", flush=True)
    print(f"{'total':14} {total:8,} inputs: only results and SpanshotError")


if __name__ == "__main__":
    main()
