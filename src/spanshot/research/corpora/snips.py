"""SNIPS few-shot episodes (Hou et al. 2020): seven folds, each with another test domain."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from spanshot.errors import ConfigError, DataError, SpanshotError, did_you_mean
from spanshot.evaluation.report import Metric
from spanshot.formats.files import read_text
from spanshot.formats.json_values import JsonValue, Place, parse_json
from spanshot.research.corpora.json_files import tagged_sentence
from spanshot.research.corpora.reading import read_once
from spanshot.research.corpora.sampling import MinimumIncludingSampler
from spanshot.research.corpora.source import Source, check_probability, distinct_sentences, known_split, with_labels
from spanshot.types import Episode, Sentence, SupportSet

FOLDS = range(1, 8)
DOMAINS = ("We", "Mu", "Pl", "Bo", "Se", "Re", "Cr")  # test domains, fold by fold
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Snips(Source):
    """The SNIPS few-shot episodes of Hou et al. (2020)."""

    metric: ClassVar[Metric] = "mean_f1"

    folder: str
    """Folder of the released folders xval_snips and xval_snips_shot_5."""
    fold: int = 1
    """Fold 1 to 7; the test domains are We, Mu, Pl, Bo, Se, Re, Cr."""
    shots: int = 1
    """1 or 5."""
    redraw: bool = False
    """Draw new training episodes from the sentences of the released ones."""
    queries: int = 0
    """Use N random query sentences of each training episode (0: all)."""
    fewer_labels: float = 0.0
    """Probability that a training episode keeps only some of its labels, at least half of them. Otherwise the labels
    of a domain are always the same, and a model can learn them by heart."""

    def __post_init__(self) -> None:
        if self.queries < 0:
            raise ConfigError(f"queries must be 0 (all) or more; found {self.queries}")
        check_probability("fewer_labels", self.fewer_labels)

    @override
    def training(self) -> Callable[[random.Random], Episode]:
        draw = self._drawn()

        def thinned(rng: random.Random) -> Episode:
            episode = draw(rng)
            if self.queries:
                query = rng.sample(episode.query, min(self.queries, len(episode.query)))
                episode = replace(episode, query=tuple(query))
            if rng.random() < self.fewer_labels:
                labels = episode.support.labels
                episode = with_labels(episode, rng.sample(labels, rng.randint((len(labels) + 1) // 2, len(labels))))
            return episode

        return thinned

    def _drawn(self) -> Callable[[random.Random], Episode]:
        released = self._read("train")
        if not self.redraw:
            return lambda rng: rng.choice(released)
        by_domain: dict[str, list[Episode]] = defaultdict(list)
        for episode in released:
            by_domain[episode.domain].append(episode)
        samplers = [
            MinimumIncludingSampler(distinct_sentences(episodes), self.shots, len(episodes[0].query), domain)
            for domain, episodes in by_domain.items()
        ]
        return lambda rng: rng.choice(samplers).sample(rng)

    @override
    def episodes(self, split: str) -> list[Episode]:
        return self._read(known_split(split))

    @override
    def sentences(self) -> list[Sentence]:
        return distinct_sentences(self._read("train"))

    def _read(self, split: str) -> list[Episode]:
        name = "valid" if split == "dev" else split
        return read_snips_episodes(snips_file(self.folder, self.fold, self.shots, name))


def snips_file(folder: str | Path, fold: int, shots: int, split: str) -> Path:
    """Return the released file of a fold: in ``folder`` itself, or in its subfolder for that number of shots."""
    if split not in SPLITS:
        raise ConfigError(f"split must be one of {', '.join(SPLITS)}; found {split!r}{did_you_mean(split, SPLITS)}")
    if fold not in FOLDS:
        raise ConfigError(f"SNIPS has the folds {FOLDS[0]} to {FOLDS[-1]}; found {fold}")
    if shots == 1:
        inner, name = "xval_snips", f"snips_{split}_{fold}.json"
    else:
        inner, name = f"xval_snips_shot_{shots}", f"snips-{split}-{fold}-shot-{shots}.json"
    folder = Path(folder)
    looked_for = [folder / inner / name, folder / name, folder / "snips" / inner / name]
    for path in looked_for:
        if path.is_file():
            return path
    raise DataError(
        f"no SNIPS file for fold {fold}, {shots}-shot, {split}; looked for {', '.join(map(str, looked_for))}"
    )


@read_once
def read_snips_episodes(path: Path) -> list[Episode]:
    """Read ``{domain: [{"support": {"seq_ins", "seq_outs"}, "query" or "batch": {...}}]}`` with BIO tags.

    Refuse query labels that the support lacks: the release has none, as its supports contain every label of the domain,
    and dropping them silently would raise the scores.
    """
    return snips_episodes(path, parse_json(path, read_text(path)))


def snips_episodes(path: Path, record: JsonValue) -> list[Episode]:
    """Return the episodes of a parsed SNIPS file."""
    place = Place(path)
    if not isinstance(record, dict):
        raise place.error("expected an object of domains, each with a list of episodes")
    episodes = []
    for domain in record:
        for number, entry in enumerate(place.take(record, domain, list), start=1):
            inside = place.within(f"{domain}, episode {number}")
            query_key = "batch" if isinstance(entry, dict) and "query" not in entry and "batch" in entry else "query"
            support, query = (_sentences(entry, key, inside) for key in ("support", query_key))
            try:
                episodes.append(Episode(SupportSet.of(support), tuple(query), domain))
            except SpanshotError as error:
                raise inside.error(str(error)) from error
    if not episodes:
        raise place.error("contains no episode")
    return episodes


def _sentences(entry: JsonValue, key: str, place: Place) -> list[Sentence]:
    part = place.take(entry, key, dict)
    place = place.within(key)
    words, tags = place.take(part, "seq_ins", list), place.take(part, "seq_outs", list)
    if len(words) != len(tags):
        raise place.error(f"{len(words)} sentences in 'seq_ins' but {len(tags)} in 'seq_outs'")
    return [
        tagged_sentence(*pair, "bio", place.within(f"sentence {number}"))
        for number, pair in enumerate(zip(words, tags, strict=True), start=1)
    ]
