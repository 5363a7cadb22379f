"""Measure the most memory that learning and tagging take, each in a fresh Python. Needs the base install.

python benchmarks/bench_memory.py
"""

from __future__ import annotations

import subprocess
import sys

from rich.console import Console
from rich.table import Table

LIMIT = 1500
PREPARE = """
import sys
from pathlib import Path
import spanshot

def examples(count):
    return [f"flight {n} leaves [Oslo](city) on [Monday](day) with {n % 7} bags and a remark" for n in range(count)]
"""
MEASURE = """
status = Path("/proc/self/status")
if status.is_file():  # the peak of this process; getrusage may report that of its parent
    print(int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1e3)
else:
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3))
"""
PROGRAMS = {
    **{
        f"learn {count:,} examples, tag one text": f"spanshot.learn(examples({count}))('to Rome on Friday')"
        for count in (10, 100, 1000, 3000)
    },
    "learn 40 examples and one of 1,000 words": "spanshot.learn([*examples(40), '[Rome](city) ' + 'word ' * 999])",
    "tag a text of 2 MB": "spanshot.learn(examples(10))('They left Paris for Rome on Friday. ' * 58_000)",
    "tag a text of 2 MB without a line break or space": "spanshot.learn(examples(10))('Paris' * 400_000)",
}


def main() -> None:
    """Measure and print."""
    table = Table(title="Most memory")
    table.add_column("task")
    table.add_column("measured", justify="right")
    table.add_column("limit", justify="right")
    for name, program in PROGRAMS.items():
        table.add_row(name, f"{peak_memory(program):.0f} MB", f"{LIMIT:,} MB")
    Console(width=100).print(table)


def peak_memory(program: str) -> float:
    """Return the most memory of a fresh Python that runs the program, in MB."""
    process = subprocess.run([sys.executable, "-c", PREPARE + program + MEASURE], capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(process.stderr)
    return float(process.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
