"""Several corpora as one source of training episodes of all sizes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from spanshot.errors import ConfigError, DataError, EpisodeError, did_you_mean
from spanshot.evaluation.report import Metric
from spanshot.formats.columns import read_columns
from spanshot.research.corpora.episode_files import read_episodes
from spanshot.research.corpora.genia import read_genia
from spanshot.research.corpora.perturbation import perturbed, without_punctuation
from spanshot.research.corpora.reading import read_once
from spanshot.research.corpora.sampling import Corpus, FewNerdSampler
from spanshot.research.corpora.snips import DOMAINS, read_snips_episodes, snips_file
from spanshot.research.corpora.source import Source, check_probability, distinct_sentences, known_split, with_labels
from spanshot.types import Episode, Sentence

Domains = Mapping[str, Sequence[Sentence]]
"""Sentences by domain. Labels are drawn from one domain at a time."""


@dataclass(frozen=True)
class Part:
    """A corpus of a mixture, written as ``NAME=FORMAT:PATH``."""

    name: str
    format: str
    path: str

    @classmethod
    def of(cls, text: str) -> Part:
        """Parse ``wnut17=bio:wnut17/train.conll``."""
        name, equals, value = text.partition("=")
        kind, colon, path = value.partition(":")
        if not (name and equals and colon and path):
            raise ConfigError(f"a part must look like NAME=FORMAT:PATH; found {text!r}")
        if kind not in FORMATS:
            kinds = ", ".join(FORMATS)
            raise ConfigError(
                f"the format of {name} must be one of {kinds}; found {kind!r}{did_you_mean(kind, FORMATS)}"
            )
        return cls(name, kind, path)

    def read(self, folder: Path) -> Domains:
        """Read the sentences."""
        return FORMATS[self.format](self.name, folder, self.path)


@dataclass(frozen=True)
class Mixture(Source):
    """Training episodes from several corpora; dev and test episodes from files."""

    metric: ClassVar[Metric] = "micro_f1"

    folder: str
    """Folder that all paths are relative to."""
    parts: tuple[str, ...]
    """Corpora to draw from, as NAME=FORMAT:PATH. Formats: io and bio (columns), genia, snips (a folder). A path may
    have wildcards."""
    weights: tuple[float, ...] = ()
    """How often each corpus is drawn from, in the same order (default: equally often)."""
    most_ways: int = 8
    """Maximum number of labels of an episode."""
    least_ways: int = 1
    """Minimum number of labels of an episode, where ``most_spans`` allows it."""
    shots: tuple[int, ...] = (1, 1, 2, 5)
    """Minimum number of examples of each label in the support, drawn from these."""
    most_spans: int = 20
    """Maximum of labels times shots of an episode, which limits the cost of a step."""
    query_shots: int = 1
    """Minimum number of examples of each label in the query."""
    fewer_labels: float = 0.3
    """Probability that some labels of an episode are left unmarked, as texts have entities that nobody asks for."""
    no_punctuation: float = 0.15
    """Probability that the punctuation of an episode is removed, as in chats and speech."""
    dev: tuple[str, ...] = ()
    """Files of dev episodes."""
    test: tuple[str, ...] = ()
    """Files of test episodes."""

    def __post_init__(self) -> None:
        for part in self.parts:
            Part.of(part)
        if not self.parts or (self.weights and len(self.weights) != len(self.parts)):
            raise ConfigError("parts must name at least one corpus, and weights, if given, one number for each part")
        if any(weight <= 0 for weight in self.weights):
            raise ConfigError(f"weights must be above 0; found {list(self.weights)}")
        if min(self.least_ways, self.query_shots, self.most_spans, *self.shots) < 1 or not self.shots:
            raise ConfigError("least_ways, shots, most_spans and query_shots must be at least 1")
        if self.least_ways > self.most_ways:
            raise ConfigError(f"least_ways must not exceed most_ways; found {self.least_ways} and {self.most_ways}")
        check_probability("fewer_labels", self.fewer_labels)
        check_probability("no_punctuation", self.no_punctuation)

    @override
    def training(self) -> Callable[[random.Random], Episode]:
        weights = self.weights or (1.0,) * len(self.parts)
        domains = [
            (weight / len(part), _Domain(name, sentences, self))
            for weight, part in zip(weights, self._read(), strict=True)
            for name, sentences in part.items()
        ]
        shares = [share for share, _ in domains]

        def draw(rng: random.Random) -> Episode:
            (_, domain) = rng.choices(domains, shares)[0]
            episode = domain.draw(rng)
            labels = episode.support.labels
            if len(labels) > 1 and rng.random() < self.fewer_labels:
                episode = with_labels(episode, rng.sample(labels, rng.randint(1, len(labels) - 1)))
            if rng.random() < self.no_punctuation:
                episode = perturbed(episode, without_punctuation)
            return episode

        return draw

    @override
    def episodes(self, split: str) -> list[Episode]:
        files = {"train": (), "dev": self.dev, "test": self.test}[known_split(split)]
        if not files:
            raise ConfigError(f"data.{split} is not set; a mixture has {split} episodes only from files")
        return [episode for file in files for episode in read_episodes(Path(self.folder) / file)]

    @override
    def sentences(self) -> list[Sentence]:
        """Return the sentences of all parts; each label gets the name of its corpus as a prefix."""
        return [
            _with_prefix(domain, sentence)
            for part in self._read()
            for domain, sentences in part.items()
            for sentence in sentences
        ]

    def _read(self) -> list[Domains]:
        return [Part.of(part).read(Path(self.folder)) for part in self.parts]


class _Domain:
    """Draws episodes of all sizes from one corpus."""

    def __init__(self, name: str, sentences: Sequence[Sentence], settings: Mixture) -> None:
        self.name, self.settings = name, settings
        corpus = Corpus.of(sentences)
        self.samplers = {k: FewNerdSampler(corpus, 1, k, settings.query_shots) for k in sorted(set(settings.shots))}

    def draw(self, rng: random.Random) -> Episode:
        """Draw an episode. Label sets with too few sentences are drawn again."""
        for _ in range(100):
            k = rng.choice(self.settings.shots)
            sampler = self.samplers[k]
            max_ways = min(self.settings.most_ways, len(sampler.labels), max(1, self.settings.most_spans // k))
            labels = rng.sample(sampler.labels, rng.randint(min(self.settings.least_ways, max_ways), max_ways))
            try:
                return replace(sampler.sample(rng, labels), domain=self.name)
            except EpisodeError:
                continue
        raise EpisodeError(f"no episode found in {self.name}; ask for fewer shots")


def _with_prefix(domain: str, sentence: Sentence) -> Sentence:
    return replace(sentence, spans=tuple(replace(span, label=f"{domain}/{span.label}") for span in sentence.spans))


# Formats


def files_at(folder: Path, pattern: str) -> list[Path]:
    """Return the files that a path below the folder names; it may have wildcards."""
    files = sorted(folder.glob(pattern)) if "*" in pattern or "[" in pattern else [folder / pattern]
    if not files:
        raise DataError.at(folder / pattern, None, "no such file; check data.folder and data.parts")
    return files


@read_once
def _read_io(path: Path) -> list[Sentence]:
    return read_columns(path, scheme="io")


@read_once
def _read_bio(path: Path) -> list[Sentence]:
    return read_columns(path, scheme="bio")


def _one_domain(read: Callable[[Path], list[Sentence]]) -> Callable[[str, Path, str], Domains]:
    def domains(name: str, folder: Path, pattern: str) -> Domains:
        return {name: [sentence for file in files_at(folder, pattern) for sentence in read(file)]}

    return domains


def _snips_domains(name: str, folder: Path, path: str) -> Domains:
    """Read each of the seven domains as a separate corpus: the test domain of one fold."""
    return {
        f"{name} {domain}": distinct_sentences(read_snips_episodes(snips_file(folder / path, fold, 1, "test")))
        for fold, domain in enumerate(DOMAINS, start=1)
    }


READERS: Mapping[str, Callable[[Path], list[Sentence]]] = {"io": _read_io, "bio": _read_bio, "genia": read_genia}
"""Formats of single files."""
FORMATS: Mapping[str, Callable[[str, Path, str], Domains]] = {
    **{name: _one_domain(read) for name, read in READERS.items()},
    "snips": _snips_domains,
}
