"""Table: time and memory of learning and tagging against the bare encoder, by number of examples.

Times are CPU seconds of one thread, medians of rounds that alternate between the model and the bare encoder. Memory is
the peak of a fresh process.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from spanshot.errors import ConfigError, DataError
from spanshot.heads.held_out import leave_one_out
from spanshot.learner import LinearLearner
from spanshot.linear_tagger import LinearTagger
from spanshot.model import Model, embedded_model
from spanshot.research.corpora.genia import read_genia
from spanshot.research.experiments.ledger import Ledger, Row, markdown
from spanshot.research.experiments.raw_text import TextExample
from spanshot.tagger import Tagger
from spanshot.types import Sentence

KEYS = ("examples",)
SIZES = (25, 400, 3000)
TAGGED = 200
"""Number of texts to tag."""
LONGEST = 60
"""Maximum length of a text, in words; longer ones are not used."""
CHECKED = 1000
"""Number of examples with which `check` is timed."""

NO_HEAD = "the packaged model has no linear head"

_PROGRAM = """
import resource, sys
from pathlib import Path
from spanshot.research.experiments import cost
cost.run_once(Path(sys.argv[1]), int(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def examples_of(corpus: Path, count: int) -> list[TextExample]:
    """Return the first texts of a corpus that are not too long."""
    examples = [TextExample.of(sentence) for sentence in read_genia(corpus) if len(sentence) <= LONGEST]
    if len(examples) < count:
        raise DataError(f"{corpus}: {count} sentences are needed; found {len(examples)}")
    return examples[:count]


def run_once(corpus: Path, size: int) -> None:
    """Learn ``size`` examples and tag texts; with 0, only run the bare encoder. Runs in a separate process."""
    texts = [example.text for example in examples_of(corpus, size + TAGGED)[size:]]
    model = embedded_model(threads=1)
    if not size:
        _bare(model, texts)
        return
    tagger = model.learn([example.record() for example in examples_of(corpus, size)])
    list(tagger.pipe(texts))


def measure(ledger: Ledger, corpus: Path, rounds: int, watch: Callable[[str], None]) -> None:
    """Measure learning and tagging for each number of examples; skip rows in the ledger."""
    model = embedded_model(threads=1)
    every = examples_of(corpus, SIZES[-1] + TAGGED)
    tagged = [example.text for example in every[-TAGGED:]]
    for size in SIZES:
        if ledger.has({"examples": size}):
            continue
        support = every[:size]
        records, texts = [example.record() for example in support], [example.text for example in support]
        tagger = model.learn(records)
        few = max(1, rounds if size < SIZES[-1] else rounds // 2)
        learn, bare_learn = _alternate(partial(model.learn, records), partial(_bare, model, texts), few)
        tag, bare_tag = _alternate(partial(_tag, tagger, tagged), partial(_bare, model, tagged), rounds)
        row: Row = {"examples": size, "labels": len(tagger.labels), "learn": learn, "bare_learn": bare_learn}
        row |= {"tag": tag, "bare_tag": bare_tag, "memory": _peak(corpus, size), "bare_memory": _peak(corpus, 0)}
        ledger.add(row)
        watch(f"{size} examples: learned in {learn:.2f} s, {TAGGED} texts tagged in {tag:.2f} s")


def seconds_to_check(corpus: Path) -> tuple[float, float]:
    """Return CPU seconds of leaving out each of 1,000 examples in turn, and of encoding them."""
    model = embedded_model(threads=1)
    support = examples_of(corpus, CHECKED)
    fitted = model.learn([example.record() for example in support]).sentence_tagger
    if not isinstance(fitted, LinearTagger):
        raise ConfigError(NO_HEAD)
    began = time.process_time()
    leave_one_out(fitted.head)
    checked = time.process_time() - began
    began = time.process_time()
    _bare(model, [example.text for example in support])
    return checked, time.process_time() - began


def tables(rows: Sequence[Row]) -> str:
    """Return times, their ratios to the bare encoder, and memory."""
    lines = []
    for row in rows:
        value = {name: float(str(cell)) for name, cell in row.items()}
        lines.append(
            [
                f"{value['examples']:,.0f}",
                f"{value['labels']:.0f}",
                f"{value['learn']:.2f} s ({value['learn'] / value['bare_learn']:.2f})",
                f"{1000 * value['tag'] / TAGGED:.1f} ms ({value['tag'] / value['bare_tag']:.2f})",
                f"{value['memory']:.0f} MB ({value['bare_memory']:.0f} MB)",
            ]
        )
    header = ["examples", "labels", "learn (ratio to the bare encoder)", "tag a text (ratio)", "memory (bare encoder)"]
    return markdown(header, lines)


def _tag(tagger: Tagger, texts: Sequence[str]) -> None:
    for _ in tagger.pipe(texts):
        pass


def _bare(model: Model, texts: Sequence[str]) -> None:
    if not isinstance(model.method, LinearLearner):
        raise ConfigError(NO_HEAD)
    model.method.encoder.encode_bare([Sentence.of_text(text).words for text in texts])


def _alternate(first: Callable[[], object], second: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the median CPU seconds of both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for action, action_times in zip((first, second), times, strict=True):
            began = time.process_time()
            action()
            action_times.append(time.process_time() - began)
    return median(times[0]), median(times[1])


def _peak(corpus: Path, size: int) -> float:
    """Return the peak memory of a fresh process in MB."""
    command = [sys.executable, "-c", _PROGRAM, str(corpus), str(size)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return round(float(process.stdout.split()[-1]), 1)
