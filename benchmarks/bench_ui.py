"""Measure how fast `spanshot ui` answers: from an action to updated suggestions, and the memory of the server.

    python benchmarks/bench_ui.py [--sentences 200 10000] [--repeat 5]

Texts are made from a few templates. Times are those of the session behind the page: an action is saved (synced to the
disk), the head is fitted, and the visible texts, then all texts, get their new suggestions.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

from spanshot.formats.documents import Document
from spanshot.model import embedded_model
from spanshot.ui.project import Project
from spanshot.ui.session import Session

NAMES = {
    "person": ("Maria", "Ahmed", "Chen", "Sofia", "Kofi", "Ingrid", "Priya", "Mary Ann"),
    "city": ("Oslo", "Rome", "Milan", "Nairobi", "Lima", "Cusco", "Lisbon", "Cape Town"),
    "day": ("Monday", "Tuesday", "Friday", "next Sunday", "New Year"),
}
TEMPLATES = (
    "{person} flies to {city} on {day} with two colleagues who have never seen the sea.",
    "The train from {city} to {city} leaves at nine on {day}, if the weather allows it.",
    "On {day}, {person} takes the night bus from {city} and writes a long letter to {person}.",
    "Nobody knew why the ferry was late, and the office gave no reason before {day} at all.",
    "Please book a quiet room in {city} for {person}, not far from the old harbour.",
)
VISIBLE = 12


def made_up(count: int) -> tuple[list[str], list[list[tuple[int, int, str]]]]:
    """Return texts and the spans in each."""
    rng = random.Random(0)
    texts, spans = [], []
    for number in range(count):
        text, inside = "", []
        for part in rng.choice(TEMPLATES).split("{"):
            label, closed, rest = part.partition("}")
            if not closed:
                text += part
                continue
            name = rng.choice(NAMES[label])
            inside.append((len(text), len(text) + len(name), label))
            text += name + rest
        texts.append(f"{text} {number}")
        spans.append(inside)
    return texts, spans


def memory() -> float:
    """Return the resident memory of this process in MB; 0 where it is not known."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def wait(session: Session, is_done: object) -> float:
    """Return the seconds until a condition holds."""
    assert callable(is_done)
    begin = time.perf_counter()
    with session.lock:
        while not is_done():
            session.changed.wait(30)
    return time.perf_counter() - begin


def measure(count: int, repeat: int) -> None:
    """Print times and memory with so many sentences."""
    texts, spans = made_up(count)
    before = memory()
    with tempfile.TemporaryDirectory() as folder:
        project = Project.open(Path(folder) / "bench.spanshot.jsonl")
        project.add_texts([Document(text) for text in texts])
        session = Session(project, embedded_model)
        marks = [(number, *span) for number, inside in enumerate(spans, start=1) for span in inside]
        visible = range(1, VISIBLE + 1)
        session.act(lambda project: [project.mark(*mark) for mark in marks[:9]], visible)
        session.start()
        first = wait(session, lambda: session.learned == session.version)
        print(f"{count:,} sentences: first suggestions for all: {first:.1f} s", flush=True)
        for title, number in (("tenth mark", 9), *((f"correction {at}", 9 + at) for at in range(1, repeat + 1))):
            session.visible = list(visible)
            begin, cpu = time.perf_counter(), time.process_time()
            fitted = session.scored
            session.act(lambda project, at=number: project.mark(*marks[at]), visible)
            saved = time.perf_counter() - begin
            wait(session, lambda before=fitted: session.scored > before)
            near, near_cpu = time.perf_counter() - begin, time.process_time() - cpu
            wait(session, lambda: session.learned == session.version)
            everywhere, everywhere_cpu = time.perf_counter() - begin, time.process_time() - cpu
            times = f"saved {saved * 1000:.0f} ms, visible {near * 1000:.0f} ms, all {everywhere * 1000:.0f} ms"
            print(f"  {title}: {times} (CPU: {near_cpu * 1000:.0f} ms and {everywhere_cpu * 1000:.0f} ms)", flush=True)
            RESULTS.setdefault(count, []).append((saved, near, everywhere))
        vectors = session.suggester.store.size / 1e6 if session.suggester else 0
        print(f"  memory: {memory():.0f} MB (before: {before:.0f} MB), of these vectors: {vectors:.0f} MB")
        session.close()


RESULTS: dict[int, list[tuple[float, float, float]]] = {}


def main() -> None:
    """Measure each number of sentences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sentences", type=int, nargs="+", default=[200, 10_000])
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    embedded_model()
    for count in arguments.sentences:
        measure(count, arguments.repeat)
    for count, times in RESULTS.items():
        saved, near, everywhere = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
        print(f"median with {count:,}: saved {saved:.0f} ms, visible {near:.0f} ms, all {everywhere:.0f} ms")


if __name__ == "__main__":
    main()
