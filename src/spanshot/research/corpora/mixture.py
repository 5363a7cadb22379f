"""Several corpora as one source of training episodes of all sizes, for a model that is to serve any text."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from spanshot.errors import ConfigError, EpisodeError, did_you_mean
from spanshot.formats.columns import read_columns
from spanshot.research.corpora.episode_files import read_episodes
from spanshot.research.corpora.fewnerd import read_fewnerd_text
from spanshot.research.corpora.genia import read_genia
from spanshot.research.corpora.perturbation import perturbed, without_punctuation
from spanshot.research.corpora.sampling import Corpus, FewNerdSampler
from spanshot.research.corpora.snips import DOMAINS, read_snips_episodes, snips_file
from spanshot.research.corpora.source import Metric, distinct_sentences, known_split, with_labels
from spanshot.types import Episode, Sentence

Domains = dict[str, list[Sentence]]


def _snips(folder: Path) -> Domains:
    """Each of the seven domains as a corpus of its own: the test domain of one fold."""
    return {
        f"snips {domain}": distinct_sentences(read_snips_episodes(snips_file(folder / "snips", fold, 1, "test")))
        for fold, domain in enumerate(DOMAINS, start=1)
    }


PARTS: dict[str, Callable[[Path], Domains]] = {
    "fewnerd": lambda folder: {"fewnerd": read_fewnerd_text(folder / "fewnerd" / "inter" / "train.txt")},
    "genia": lambda folder: {"genia": read_genia(folder / "genia" / "train.jsonl")},
    "wnut17": lambda folder: {"wnut17": read_columns(folder / "wnut17" / "wnut17train.conll", scheme="bio")},
    "btc": lambda folder: {
        "btc": [s for name in "abefgh" for s in read_columns(folder / "btc" / f"{name}.conll", scheme="bio")]
    },
    "wikigold": lambda folder: {"wikigold": read_columns(folder / "wikigold" / "wikigold.conll.txt", scheme="io")},
    "snips": _snips,
}


@dataclass(frozen=True)
class Mixture:
    """Training episodes from several corpora; dev and test episodes are Few-NERD INTER's."""

    metric: ClassVar[Metric] = "micro_f1"

    folder: str
    """Folder that holds the corpora, each in a folder of its name: fewnerd, genia, wnut17, btc, wikigold, snips."""
    parts: tuple[str, ...] = tuple(PARTS)
    """Which of them to draw from."""
    weights: tuple[float, ...] = ()
    """How often each of them is drawn from, in the same order; without, all alike."""
    most_ways: int = 8
    """Most labels of an episode; at least one."""
    shots: tuple[int, ...] = (1, 1, 2, 5)
    """Least examples of each label in the support, drawn from these."""
    most_spans: int = 20
    """Most labels times shots of an episode, which bounds what a step costs."""
    query_shots: int = 1
    """Least examples of each label in the query."""
    fewer_labels: float = 0.3
    """Chance that some labels of an episode are left unmarked, as text has entities that nobody asks for."""
    no_punctuation: float = 0.15
    """Chance that an episode's punctuation is left out, as in chat and speech."""
    dev: tuple[str, ...] = ("5_1", "5_5")
    """Ways and shots of the Few-NERD INTER episodes to measure on."""

    def __post_init__(self) -> None:
        for part in self.parts:
            if part not in PARTS:
                raise ConfigError(f"parts must be of {', '.join(PARTS)}; found {part!r}{did_you_mean(part, PARTS)}")
        if not self.parts or (self.weights and len(self.weights) != len(self.parts)):
            raise ConfigError("parts must name a corpus at least, and weights, if given, be as many as parts")
        if any(weight <= 0 for weight in self.weights):
            raise ConfigError(f"weights must be above 0; found {list(self.weights)}")
        if min(self.most_ways, self.query_shots, self.most_spans, *self.shots) < 1 or not self.shots:
            raise ConfigError("most_ways, shots, most_spans and query_shots must be at least 1")
        for name in ("fewer_labels", "no_punctuation"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is a chance, in 0..1; found {getattr(self, name)}")

    def training(self) -> Callable[[random.Random], Episode]:  # noqa: D102
        weights = self.weights or (1.0,) * len(self.parts)
        domains = [
            (weight / len(own), _Domain(name, sentences, self))
            for weight, own in zip(weights, self._read(), strict=True)
            for name, sentences in own.items()
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

    def episodes(self, split: str) -> list[Episode]:  # noqa: D102
        folder = Path(self.folder) / "fewnerd" / "inter" / "episodes"
        return [e for size in self.dev for e in read_episodes(folder / f"{known_split(split)}_{size}.jsonl")]

    def sentences(self) -> list[Sentence]:
        """The sentences of all parts; a label goes by its corpus's name, since no two mean quite the same by it."""
        return [
            _labelled_by(domain, sentence)
            for own in self._read()
            for domain, sentences in own.items()
            for sentence in sentences
        ]

    def _read(self) -> list[Domains]:
        return [PARTS[part](Path(self.folder)) for part in self.parts]


class _Domain:
    """Episodes of all sizes from one corpus."""

    def __init__(self, name: str, sentences: Sequence[Sentence], settings: Mixture) -> None:
        self.name, self.settings = name, settings
        corpus = Corpus.of(sentences)
        self.samplers = {k: FewNerdSampler(corpus, 1, k, settings.query_shots) for k in sorted(set(settings.shots))}

    def draw(self, rng: random.Random) -> Episode:
        """An episode of some labels; label sets whose sentences do not suffice are drawn anew."""
        for _ in range(100):
            k = rng.choice(self.settings.shots)
            sampler = self.samplers[k]
            most = min(self.settings.most_ways, len(sampler.labels), max(1, self.settings.most_spans // k))
            labels = rng.sample(sampler.labels, rng.randint(1, most))
            try:
                return replace(sampler.sample(rng, labels), domain=self.name)
            except EpisodeError:
                continue
        raise EpisodeError(f"no episode found in {self.name}; ask for fewer shots")


def _labelled_by(domain: str, sentence: Sentence) -> Sentence:
    return replace(sentence, spans=tuple(replace(span, label=f"{domain}/{span.label}") for span in sentence.spans))
