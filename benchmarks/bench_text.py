"""Measure what users of raw text wait for, relative to the bare encoder in the same engine. Needs the base install.

    make bench                                       a table, after that of bench.py
    python benchmarks/bench_text.py --stream 100000  with a longer stream
    python benchmarks/bench_text.py --dtype int8

Times are CPU times, as medians of interleaved rounds. Examples are random sentences whose labels depend on their words.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from spanshot.learner import LinearLearner
from spanshot.model import Model, embedded_model
from spanshot.tagger import Tagger
from spanshot.types import Sentence, Span, SupportSet

WORDS_PER_SENTENCE = (24.5, 11.0)
"""Mean and standard deviation in Few-NERD."""
COMMON = [
    "the",
    "of",
    "and",
    "in",
    "to",
    "was",
    "is",
    "for",
    "as",
    "on",
    "with",
    "by",
    "he",
    "at",
    "from",
    "his",
    "an",
    "were",
    "are",
    "which",
    "this",
    "also",
    "has",
    "or",
    "had",
    "first",
    "their",
    "after",
    "its",
    "new",
    "who",
    "they",
    "two",
    "her",
    "she",
    "been",
    "other",
    "when",
    "time",
    "during",
    "there",
    "into",
    "school",
    "all",
    "one",
    "more",
    "university",
    "city",
    "world",
    "year",
    "national",
    "team",
    "played",
    "season",
    "film",
    "company",
    "government",
    "river",
    "station",
    "music",
    "award",
    "building",
    "district",
]
NAMES = [
    "Oslo",
    "Rome",
    "Lovelace",
    "Jobs",
    "Apple",
    "Cambridge",
    "Curie",
    "York",
    "Siemens",
    "Lima",
    "Hopper",
    "Paris",
    "Kyoto",
    "Nordbank",
    "Karenina",
    "Wilhelmina",
    "Bradford",
    "Tchaikovsky",
    "Queensland",
    "Northumberland",
    "Lisbon",
    "Quito",
    "Turing",
    "Noether",
    "Nokia",
    "Sony",
    "Dublin",
    "Galway",
    "Babbage",
    "Kepler",
]
MANY = 1000
"""Numbers of examples from which on tagging may take slightly longer."""
LEARN = """
import sys
sys.path.insert(0, {folder!r})
from bench_text import examples, peak_of_this_process
import spanshot
tagger = spanshot.learn(examples({count}, 5))
tagger("They left Paris for Rome on Friday.")
print(peak_of_this_process())
"""
TAG = "import sys; from spanshot.cli.main import main; main(['tag', '-e', sys.argv[1], 'Grace Hopper left Oslo.'])"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stream", type=int, default=2000, help="Sentences of the stream whose memory is watched.")
    parser.add_argument("--dtype", default="float32", help="float32 or int8.")
    parser.add_argument("--counts", type=int, nargs="*", default=[25, 400, 3000], help="Numbers of examples.")
    options = parser.parse_args()
    model = embedded_model(dtype=options.dtype)
    table = Table(title=f"Raw text, {options.dtype}; ratios to the bare encoder")
    for column in ("what", "measured", "aim"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row("import spanshot", f"{import_seconds():.2f} s", "")
    table.add_row("spanshot tag, 8 examples, CPU time", f"{command_seconds():.2f} s", "≤ 1.3 s")
    for count in options.counts:
        for row in example_rows(model, count, options.rounds):
            table.add_row(*row)
    for row in label_rows(model, options.rounds):
        table.add_row(*row)
    for count, aim in ((25, "≤ 300 MB"), (3000, "≤ 450 MB")):
        table.add_row(f"peak memory, {count:,} examples", f"{peak_memory(count):.0f} MB", aim)
    peaks = stream_memory(model.learn_support(examples(25, 5)), options.stream)
    by_tenth = " ".join(f"{peak:.0f}" for peak in peaks)
    table.add_row(f"memory over {options.stream:,} sentences, tenth by tenth", f"{by_tenth} MB", "flat")
    Console(width=120).print(table)


def example_rows(model: Model, count: int, rounds: int) -> Iterator[tuple[str, str, str]]:
    """Measure learning, adding and tagging with a number of examples."""
    learner = engine(model)
    support = examples(count, 5)
    words = [sentence.words for sentence in support.sentences]
    learner.encoder.encode_bare(words[:32])
    times = [
        (cpu_seconds(lambda: learner.encoder.encode_bare(words)), cpu_seconds(lambda: model.learn_support(support)))
        for _ in range(rounds if count < MANY else 1)
    ]
    learned, ratio = (
        statistics.median(column) for column in zip(*((whole, whole / bare) for bare, whole in times), strict=True)
    )
    yield f"learn {count:,} examples", f"{learned:.2f} s, {ratio:.2f} of encoding", "≤ 1.5"
    tagger = model.learn_support(support)
    extra = random_sentence(random.Random(0), 5)
    adding = statistics.median(cpu_seconds(lambda: tagger.add([extra])) for _ in range(3))
    encoding = statistics.median(cpu_seconds(lambda: learner.encoder.encode_bare([extra.words])) for _ in range(5))
    yield f"add one example to {count:,}", f"{adding:.2f} s", f"≤ {2 * encoding + 0.2:.2f} s"
    aim = "≤ 1.2" if count < MANY else "≤ 1.25"
    for batch in (1, 32):
        speed, ratio = tagging(model, tagger, batch, rounds)
        yield f"tag with {count:,} examples, {batch} at a time", f"{ratio:.2f} ({speed:,.0f} words/s)", aim


def label_rows(model: Model, rounds: int) -> Iterator[tuple[str, str, str]]:
    """Measure tagging with few and many labels."""
    baseline = None
    for labels in (2, 20, 200):
        tagger = model.learn_support(examples(max(50, 2 * labels), labels))
        _, ratio = tagging(model, tagger, 32, rounds)
        baseline = ratio if baseline is None else baseline
        yield f"tag {len(tagger.labels)} labels, 32 at a time", f"{ratio:.2f}", f"≤ {baseline + 0.1:.2f}"


def tagging(model: Model, tagger: Tagger, batch: int, rounds: int) -> tuple[float, float]:
    """Return words per second of CPU time, and the ratio to the encoder alone on the same words."""
    rng = random.Random(2)
    sentences = [random_sentence(rng, 5) for _ in range(32)]
    texts = [" ".join(sentence.words) for sentence in sentences]
    words = [sentence.words for sentence in sentences]
    encoder = engine(model).encoder

    def bare() -> None:
        for start in range(0, len(words), batch):
            encoder.encode_bare(words[start : start + batch])

    def tag_all() -> None:
        for start in range(0, len(texts), batch):
            list(tagger.pipe(texts[start : start + batch], batch))

    bare()
    tag_all()
    times = [(cpu_seconds(bare), cpu_seconds(tag_all)) for _ in range(rounds)]
    ratio = statistics.median(tagging_time / encoding_time for encoding_time, tagging_time in times)
    return sum(map(len, words)) / statistics.median(tagging_time for _, tagging_time in times), ratio


def engine(model: Model) -> LinearLearner:
    """Return the learner of the packaged model."""
    assert isinstance(model.method, LinearLearner)
    return model.method


def examples(count: int, labels: int) -> SupportSet:
    """Return random examples; each label occurs if there are enough of them."""
    rng = random.Random(1)
    return SupportSet.of(random_sentence(rng, labels) for _ in range(count))


def random_sentence(rng: random.Random, labels: int) -> Sentence:
    """Return a sentence with one or two names; a name's label depends on the word before it and on the name."""
    words = [rng.choice(COMMON) for _ in range(max(6, round(rng.gauss(*WORDS_PER_SENTENCE))))]
    spans = []
    for _ in range(rng.randint(1, 2)):
        number = rng.randrange(len(NAMES))
        at = rng.randrange(1, len(words))
        if any(span.start <= at < span.end for span in spans):
            continue
        words[at] = NAMES[number]
        label_number = number if labels <= len(NAMES) else number + len(NAMES) * COMMON.index(rng.choice(COMMON))
        spans.append(Span(at, at + 1, f"label{label_number % labels}"))
    return Sentence(tuple(words), tuple(spans))


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the CPU time of an action, in all threads of the process."""
    started = time.process_time()
    action()
    return time.process_time() - started


def peak_memory(count: int) -> float:
    """Return the most memory of a fresh Python that learns and tags, in MB."""
    program = LEARN.format(folder=str(Path(__file__).parent), count=count)
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(process.stdout.splitlines()[-1])


def stream_memory(tagger: Tagger, count: int) -> list[float]:
    """Return the most memory of the process in each tenth of a stream, in MB. It should not grow."""
    rng = random.Random(3)
    texts = (" ".join(random_sentence(rng, 5).words) for _ in range(count))
    peaks = [0.0] * 10
    for number, _ in enumerate(tagger.pipe(texts)):
        if number % 8 == 0:
            tenth = 10 * number // count
            peaks[tenth] = max(peaks[tenth], _memory())
    return peaks


def peak_of_this_process() -> float:
    """Return the most memory that this process has had, in MB; not that of its parent, as getrusage may."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _memory() -> float:
    status = Path("/proc/self/statm")
    if status.is_file():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def import_seconds() -> float:
    """Return the time that `import spanshot` takes in a fresh Python."""
    program = "import time; t = time.perf_counter(); import spanshot; print(time.perf_counter() - t)"
    processes = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in range(3)]
    return statistics.median(float(process.stdout) for process in processes)


def command_seconds() -> float:
    """Return the CPU time of `spanshot tag` with the examples of the demo, in a fresh Python."""
    path = Path(__file__).parents[1] / "examples" / "founders.txt"
    times = [_child_seconds([sys.executable, "-c", TAG, str(path)]) for _ in range(3)]
    return min(times)


def _child_seconds(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
