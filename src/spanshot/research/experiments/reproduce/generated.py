"""Made-up corpora in the layouts of SNIPS, Few-NERD and GENIA, for the small budget.

Names are built from syllables, and every label has words of its own before its names, so that there is something to
learn. The same files are written every time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from spanshot.files import write_text
from spanshot.json_text import JsonValue, to_json
from spanshot.research.corpora.sampling import MinimumIncludingSampler
from spanshot.research.corpora.snips import DOMAINS, FOLDS
from spanshot.research.experiments.reproduce.tiny_encoder import write_tiny_encoder
from spanshot.tags import tags_from_spans
from spanshot.types import Episode, Sentence, Span

GENIA_TYPES = ("DNA", "RNA", "cell_line", "cell_type", "protein")
SNIPS_EPISODES = {"train": 3, "valid": 3, "test": 4}
"""Episodes of each domain in a split."""
FILLERS = ("please", "now", "the", "we", "saw", "near", "today", "again", "old", "with")
SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "pa", "ri", "su", "te", "vo", "za")
COMPLETE = "complete"


def write_generated_data(folder: Path) -> None:
    """Write all corpora and a tiny encoder to the folder, unless they are there."""
    if (folder / COMPLETE).is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    _write_snips(folder / "snips")
    for number, split in enumerate(("inter", "intra_like")):
        _write_fewnerd(folder / "fewnerd" / split, random.Random(f"fewnerd {number}"))
    _write_genia(folder / "genia", random.Random("genia"))
    write_tiny_encoder(folder / "encoder")
    write_text(folder / COMPLETE, ["1\n"])


class Label:
    """A label with names and a word that announces them."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name = name
        self.cue = _word(rng)
        self.names = [tuple(_word(rng) for _ in range(rng.choice((1, 1, 2)))) for _ in range(6)]


def sentence_of(labels: Sequence[Label], rng: random.Random) -> Sentence:
    """Return a sentence with one name of each label; names never touch."""
    words: list[str] = []
    spans: list[Span] = []
    for label in labels:
        words += [rng.choice(FILLERS), label.cue]
        name = rng.choice(label.names)
        spans.append(Span(len(words), len(words) + len(name), label.name))
        words += name
    return Sentence((*words, rng.choice(FILLERS)), tuple(spans))


def nested_sentence(outer: Label, inner: Label, rng: random.Random) -> Sentence:
    """Return a sentence with a name that contains another one."""
    start = sentence_of([outer], rng)
    (span,) = start.spans
    name = rng.choice(inner.names)
    words = (*start.words[: span.start], *name, *start.words[span.start :])
    inside = Span(span.start, span.start + len(name), inner.name)
    return Sentence(words, (inside, Span(span.start, span.end + len(name), outer.name)))


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.choice((2, 3))))


def _write_snips(folder: Path) -> None:
    rng = random.Random("snips")
    sentences: dict[str, list[Sentence]] = {}
    for domain in DOMAINS:
        labels = [Label(f"{domain.lower()}_{number}", rng) for number in range(3)]
        sentences[domain] = [sentence_of(rng.sample(labels, rng.choice((1, 2))), rng) for _ in range(60)]
    for shots, inner, name in (
        (1, "xval_snips", "snips_{split}_{fold}.json"),
        (5, "xval_snips_shot_5", "snips-{split}-{fold}-shot-5.json"),
    ):
        (folder / inner).mkdir(parents=True, exist_ok=True)
        for fold in FOLDS:
            test, dev = DOMAINS[fold - 1], DOMAINS[fold % len(DOMAINS)]
            domains = {"train": [d for d in DOMAINS if d not in (test, dev)], "valid": [dev], "test": [test]}
            for split, names in domains.items():
                record: dict[str, JsonValue] = {}
                for domain in names:
                    sampler = MinimumIncludingSampler(sentences[domain], shots, 4, domain)
                    record[domain] = [_snips_record(sampler.sample(rng)) for _ in range(SNIPS_EPISODES[split])]
                write_text(folder / inner / name.format(split=split, fold=fold), [to_json(record)])


def _snips_record(episode: Episode) -> JsonValue:
    parts = {"support": episode.support.sentences, "query": episode.query}
    return {
        key: {
            "seq_ins": [list(sentence.words) for sentence in part],
            "seq_outs": [tags_from_spans(len(sentence), sentence.spans, "bio") for sentence in part],
        }
        for key, part in parts.items()
    }


def _write_fewnerd(folder: Path, rng: random.Random) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        labels = [Label(f"{split}-{number}", rng) for number in range(12)]
        sentences = [sentence_of(rng.sample(labels, rng.choice((1, 1, 2))), rng) for _ in range(600)]
        lines = []
        for sentence in sentences:
            tags = tags_from_spans(len(sentence), sentence.spans, "io")
            lines += [f"{word}\t{tag}\n" for word, tag in zip(sentence.words, tags, strict=True)]
            lines.append("\n")
        write_text(folder / f"{split}.txt", lines)


def _write_genia(folder: Path, rng: random.Random) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    labels = [Label(name, rng) for name in GENIA_TYPES]
    for split in ("train", "dev", "test"):
        lines = []
        for number in range(160):
            pair = rng.sample(labels, 2)
            sentence = (
                nested_sentence(pair[0], pair[1], rng)
                if number % 3 == 0
                else sentence_of(pair[: rng.choice((1, 2))], rng)
            )
            entities: list[JsonValue] = [
                {"start": span.start, "end": span.end, "type": span.label} for span in sentence.spans
            ]
            record: JsonValue = {"id": f"{split}-{number}", "tokens": list(sentence.words), "entities": entities}
            lines.append(to_json(record) + "\n")
        write_text(folder / f"{split}.jsonl", lines)
