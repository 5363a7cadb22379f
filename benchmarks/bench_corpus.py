"""Measure `spanshot tag-corpus`: its speed with several workers, and its output if the job is killed again and again.

    python benchmarks/bench_corpus.py speed --sentences 20000                  random sentences
    python benchmarks/bench_corpus.py speed --data FOLDER --runners local ray  sentences of corpora
    python benchmarks/bench_corpus.py scan --data FOLDER --sentences 200000    how fast inputs are counted and hashed
    python benchmarks/bench_corpus.py whole --data FOLDER --sentences 200000   the undisturbed run of the next command
    python benchmarks/bench_corpus.py kills --data FOLDER --sentences 200000 --kills 30 --runner local

FOLDER is searched for JSON lines with a field "text" or "tokens" and for columns of words (.txt, .conll, .bio). The
sentences become four Parquet files in the folder `--work`, where everything is kept, so that the same command continues
after an interruption. Each worker computes with one thread, in float32. Results are Markdown tables.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

FILES = 4
MOST_WORDS = 40
EXAMPLES = Path(__file__).parents[1] / "examples" / "founders.txt"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "SPANSHOT_THREADS": "1"}
BARE = """
import sys, time
import pyarrow.parquet as pq
import spanshot
tagger = spanshot.load(sys.argv[1])
texts = pq.read_table(sys.argv[2])["text"].to_pylist()[: int(sys.argv[3])]
list(tagger.pipe(texts[:64]))
began, cpu = time.monotonic(), time.process_time()
for _ in tagger.pipe(texts):
    pass
print(len(texts), time.monotonic() - began, time.process_time() - cpu)
"""


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["speed", "scan", "whole", "kills"])
    parser.add_argument("--data", type=Path, help="folder with corpora")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--most-words", type=int, default=MOST_WORDS, help="leave out longer sentences")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir(), "spanshot-bench-corpus"))
    parser.add_argument("--rows", type=int, default=2048, help="rows per part")
    parser.add_argument("--runners", nargs="*", default=["local"], help="for speed: local, ray")
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2, 4], help="for speed")
    parser.add_argument("--runner", default="local", help="for kills")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--every", type=float, default=15.0, help="mean seconds between two kills")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    bench = Bench(options.work, options.rows)
    bench.prepare(options.data, options.sentences, options.most_words)
    if options.task == "speed":
        bench.speed(options.runners, options.workers)
    elif options.task == "scan":
        bench.scan()
    elif options.task == "whole":
        bench.undisturbed()
    else:
        bench.kills(options.runner, options.kills, options.every, options.seed)


class Bench:
    """Jobs on one set of input files."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self.rows = rows
        self.tagger = folder / "tagger"
        self.inputs = folder / "inputs"

    def prepare(self, data: Path | None, count: int, most_words: int) -> None:
        """Write the inputs and the tagger, if they are not there yet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.inputs = self.folder / f"inputs-{count}-{most_words}{'-data' if data else ''}"
        if not self.inputs.is_dir():
            texts = sentences(data, count, most_words)
            scratch = self.folder / "inputs.new"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            for number in range(FILES):
                numbers = range(number * count // FILES, (number + 1) * count // FILES)
                table = pa.table({"id": list(numbers), "text": [texts[at] for at in numbers]})
                pq.write_table(table, scratch / f"{number}.parquet")
            scratch.rename(self.inputs)
        if not self.tagger.is_dir():
            run([sys.executable, "-m", "spanshot", "learn", "-e", str(EXAMPLES), "-o", str(self.tagger)])
        self.count = count
        words = sum(text.count(" ") + 1 for text in self.texts())
        print(f"{count:,} sentences, {words / count:.1f} words each, parts of {self.rows} rows\n", flush=True)

    def texts(self) -> list[str]:
        """Return all texts."""
        import pyarrow.parquet as pq

        return pq.read_table(self.inputs)["text"].to_pylist()

    def command(self, out: Path, runner: str, workers: int) -> list[str]:
        """Return the command of a job."""
        arguments = ["--tagger", self.tagger, "-i", f"{self.inputs}/*.parquet", "-o", out, "--rows", self.rows]
        arguments += ["--runner", runner, "--workers", workers, "--quiet"]
        return [sys.executable, "-m", "spanshot", "-v", "tag-corpus", *map(str, arguments)]

    # Speed

    def speed(self, runners: list[str], workers: list[int]) -> None:
        """Print a table of the bare `pipe` and of jobs."""
        first = next(iter(sorted(self.inputs.glob("*.parquet"))))
        arguments = [str(self.tagger), str(first), str(self.count)]
        printed = run([sys.executable, "-c", BARE, *arguments]).split()
        rows, seconds, cpu = int(printed[0]), float(printed[1]), float(printed[2])
        bare, bare_cpu = rows / seconds, rows / cpu
        print("| | workers | rows/s | per worker, of `pipe` | rows per CPU second | of `pipe` |")
        print("| --- | --- | --- | --- | --- | --- |")
        print(f"| `pipe`, one thread | 1 | {bare:,.0f} | 1.00 | {bare_cpu:,.0f} | 1.00 |", flush=True)
        for runner in runners:
            for number in workers:
                out = self.folder / f"speed-{runner}-{number}"
                shutil.rmtree(out, ignore_errors=True)
                run(self.command(out, runner, number))
                records = manifest(out)
                # From the first part to the last; the start of Ray or of the workers is not counted.
                busy = sum(record["seconds"] for record in records) / number
                rate = self.count / busy
                rate_cpu = self.count / sum(record["cpu_seconds"] for record in records)
                share, share_cpu = rate / number / bare, rate_cpu / bare_cpu
                print(
                    f"| {runner} | {number} | {rate:,.0f} | {share:.2f} | {rate_cpu:,.0f} | {share_cpu:.2f} |",
                    flush=True,
                )

    # Scan

    def scan(self) -> None:
        """Print how fast inputs are scanned before a job, with one thread."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from spanshot.corpus import CorpusSettings
        from spanshot.corpus.scan import scan

        texts = self.texts()
        content = "".join(f"{json.dumps({'id': at, 'text': text})}\n" for at, text in enumerate(texts)).encode()
        folder = self.folder / "scan"
        folder.mkdir(exist_ok=True)
        (folder / "a.jsonl").write_bytes(content)
        (folder / "a.jsonl.gz").write_bytes(gzip.compress(content))
        (folder / "a.jsonl.zst").write_bytes(pa.compress(content, "zstd", asbytes=True))
        pq.write_table(pa.table({"id": range(len(texts)), "text": texts}), folder / "a.parquet")
        print("| file | million rows/s | MB/s of text, decompressed |")
        print("| --- | --- | --- |")
        for path in sorted(folder.iterdir()):
            began = time.process_time()
            rows = scan(str(path), CorpusSettings()).rows
            seconds = time.process_time() - began
            print(f"| `{path.name[1:]}` | {rows / seconds / 1e6:.2f} | {len(content) / seconds / 1e6:,.0f} |")

    # Kills

    def undisturbed(self) -> Path:
        """Run a job that nobody kills, if that was not done before; return its output."""
        out = self.folder / f"whole-{self.count}"
        if not self._is_done(out):
            run(self.command(out, "local", 2))
        return out

    def kills(self, runner: str, count: int, every: float, seed: int) -> None:
        """Run a job undisturbed and one that is killed; compare their outputs."""
        wanted = digests(self.undisturbed())
        rng = random.Random(seed)
        out = self.folder / f"killed-{runner}-{self.count}"
        shutil.rmtree(out, ignore_errors=True)
        kills = {"driver": 0, "worker": 0}
        repeated = runs = 0
        began = time.monotonic()
        log = self.folder / f"killed-{runner}.log"
        while True:
            runs += 1
            with log.open("wb") as file:
                command = self.command(out, runner, 2)
                process = subprocess.Popen(command, stderr=file, stdout=file, env=os.environ | ONE_THREAD)
            while sum(kills.values()) < count:
                try:
                    process.wait(rng.uniform(0, 2 * every))
                    break
                except subprocess.TimeoutExpired:
                    pass
                kind = "driver" if rng.random() < 0.5 else "worker"
                victims = [process.pid] if kind == "driver" else workers_of(process.pid)
                if not victims:
                    continue
                try:
                    os.kill(rng.choice(victims), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                kills[kind] += 1
                if kind == "driver":
                    break
            code = process.wait()
            repeated += len(re.findall("begun", log.read_text(encoding="utf-8", errors="replace")))
            if code == 0:
                break
            if code != -signal.SIGKILL:
                raise SystemExit(f"the job failed:\n{log.read_text(encoding='utf-8', errors='replace')}")
        seconds = time.monotonic() - began
        written = digests(out)
        ids = [number for name in written if name.startswith("tagged") for number in ids_of(out / name)]
        print(
            "| runner | rows | kills of the driver | of workers | runs | parts repeated after worker kills | minutes |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- |")
        print(
            f"| {runner} | {len(ids):,} | {kills['driver']} | {kills['worker']} | {runs} | {repeated} | "
            f"{seconds / 60:.1f} |\n"
        )
        print(f"files identical to the undisturbed run: {written == wanted} ({len(written)} files)")
        print(f"every row exactly once: {sorted(ids) == list(range(self.count))}")
        if written != wanted or sorted(ids) != list(range(self.count)):
            raise SystemExit("the output differs")

    def _is_done(self, out: Path) -> bool:
        return (out / "manifest.jsonl").is_file() and sum(r["rows"] for r in manifest(out)) == self.count


def run(command: list[str]) -> str:
    """Run a command to its end and return its output."""
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:6])} ... failed:\n{done.stderr}")
    return done.stdout


def manifest(out: Path) -> list[dict[str, float]]:
    """Return the lines of a manifest."""
    return [json.loads(line) for line in (out / "manifest.jsonl").open(encoding="utf-8")]


def digests(out: Path) -> dict[str, str]:
    """Return the digest of each output file."""
    files = sorted(path for path in out.glob("*/*") if path.is_file())
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def ids_of(path: Path) -> list[int]:
    """Return the ids of the rows of an output file."""
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=["id"])["id"].to_pylist()


def workers_of(driver: int) -> list[int]:
    """Return the worker processes of a job: Python processes of the local mode, or actors of Ray."""
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    processes = [line.split(None, 2) for line in listing.splitlines()]
    family = {driver}
    for _ in range(4):  # driver, raylet, actor
        family |= {int(pid) for pid, parent, *_ in processes if int(parent) in family}
    marks = ("spanshot.corpus.worker", "ray::MapWorker", "ray::_MapWorker")
    return [int(pid) for pid, _, *args in processes if int(pid) in family and args and any(m in args[0] for m in marks)]


def sentences(data: Path | None, count: int, most_words: int) -> list[str]:
    """Return sentences of the corpora, or random ones, in a fixed random order."""
    rng = random.Random(1)
    if data is None:
        sys.path.insert(0, str(Path(__file__).parent))
        from bench_text import random_sentence

        return [" ".join(random_sentence(rng, 5).words) for _ in range(count)]
    pool: set[str] = set()
    for path in sorted(path for path in data.rglob("*") if path.suffix in {".jsonl", ".txt", ".conll", ".bio"}):
        pool.update(text for text in read_sentences(path) if 2 <= text.count(" ") < most_words)
    texts = sorted(pool)
    rng.shuffle(texts)
    return (texts * (count // len(texts) + 1))[:count]


def read_sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a file."""
    with path.open(encoding="utf-8", errors="replace") as file:
        if path.suffix == ".jsonl":
            for line in file:
                record = json.loads(line)
                text = record.get("text") or " ".join(map(str, record.get("tokens") or ()))
                if isinstance(text, str):
                    yield from filter(None, map(str.strip, text.splitlines()))
            return
        words: list[str] = []
        for line in file:
            cells = line.split()
            if cells and len(cells) <= 4:
                words.append(cells[-1] if path.suffix == ".bio" else cells[0])
            elif words:
                yield " ".join(words)
                words = []
        if words:
            yield " ".join(words)


if __name__ == "__main__":
    main()
