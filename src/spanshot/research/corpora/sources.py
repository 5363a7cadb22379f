"""Where a run's episodes come from: one settings class per kind of source, each able to open what it names."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from spanshot.errors import ConfigError, DataError
from spanshot.research.corpora.episode_files import read_episodes
from spanshot.research.corpora.fewnerd import read_fewnerd_text
from spanshot.research.corpora.mixture import Mixture
from spanshot.research.corpora.sampling import FewNerdSampler, MinimumIncludingSampler
from spanshot.research.corpora.snips import read_snips_episodes, snips_file
from spanshot.research.corpora.source import Metric, Source, distinct_sentences, known_split, with_labels
from spanshot.types import Episode, Sentence


@dataclass(frozen=True)
class Snips:
    """The SNIPS few-shot episodes of Hou et al. (2020)."""

    metric: ClassVar[Metric] = "mean_f1"

    folder: str
    """Folder that holds xval_snips and xval_snips_shot_5 as released."""
    fold: int = 1
    """Fold 1 to 7; its test domains are We Mu Pl Bo Se Re Cr."""
    shots: int = 1
    """1 or 5."""
    redraw: bool = False
    """Draw new training episodes from the sentences of the released ones, instead of repeating those."""
    queries: int = 0
    """Query sentences of a training episode, drawn at random from its own; 0 for all of them."""
    fewer_labels: float = 0.0
    """Chance that a training episode keeps only some of its labels, half of them at least. A domain always has
    the same labels; where any may be missing, they cannot be learned by heart."""

    def __post_init__(self) -> None:
        if self.queries < 0:
            raise ConfigError(f"queries must be 0 (all) or more; found {self.queries}")
        if not 0 <= self.fewer_labels <= 1:
            raise ConfigError(f"fewer_labels is a chance, in 0..1; found {self.fewer_labels}")

    def training(self) -> Callable[[random.Random], Episode]:  # noqa: D102
        draw = self._drawn()

        def thinned(rng: random.Random) -> Episode:
            episode = draw(rng)
            if self.queries:
                some = rng.sample(episode.query, min(self.queries, len(episode.query)))
                episode = replace(episode, query=tuple(some))
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
            MinimumIncludingSampler(distinct_sentences(own), self.shots, len(own[0].query), domain)
            for domain, own in by_domain.items()
        ]
        return lambda rng: rng.choice(samplers).sample(rng)

    def episodes(self, split: str) -> list[Episode]:  # noqa: D102
        return self._read(known_split(split))

    def sentences(self) -> list[Sentence]:  # noqa: D102
        return distinct_sentences(self._read("train"))

    def _read(self, split: str) -> list[Episode]:
        name = "valid" if split == "dev" else split
        return read_snips_episodes(snips_file(self.folder, self.fold, self.shots, name))


@dataclass(frozen=True)
class FewNerd:
    """Few-NERD: training episodes drawn from train.txt, fixed dev and test episodes."""

    metric: ClassVar[Metric] = "micro_f1"

    folder: str
    """Folder of one split (INTER, INTRA): train.txt, and episodes/{dev,test}_N_K.jsonl or the same beside it."""
    ways: int = 5
    """Labels of an episode (N)."""
    shots: int = 1
    """Least examples of each label in the support (K); there are at most twice as many."""
    query_shots: int = 0
    """The same for the query of a training episode; 0 means as many as in the support."""

    def training(self) -> Callable[[random.Random], Episode]:  # noqa: D102
        return FewNerdSampler(self.sentences(), self.ways, self.shots, self.query_shots or None).sample

    def episodes(self, split: str) -> list[Episode]:  # noqa: D102
        name = f"{known_split(split)}_{self.ways}_{self.shots}.jsonl"
        looked_for = [Path(self.folder) / "episodes" / name, Path(self.folder) / name]
        for path in looked_for:
            if path.is_file():
                return read_episodes(path)
        raise DataError(
            f"no Few-NERD episodes for {self.ways}-way {self.shots}-shot {split}; looked for "
            f"{' and '.join(map(str, looked_for))}; `spanshot sample` draws such files"
        )

    def sentences(self) -> list[Sentence]:  # noqa: D102
        return read_fewnerd_text(Path(self.folder) / "train.txt")


@dataclass(frozen=True)
class EpisodeFiles:
    """Episode files of one's own, as `spanshot sample` writes them."""

    metric: ClassVar[Metric] = "micro_f1"

    train: str
    """Training episodes."""
    dev: str
    """Episodes to choose the best step by."""
    test: str = ""
    """Episodes for the final figures."""

    def training(self) -> Callable[[random.Random], Episode]:  # noqa: D102
        released = read_episodes(self.train)
        return lambda rng: rng.choice(released)

    def episodes(self, split: str) -> list[Episode]:  # noqa: D102
        path = {"train": self.train, "dev": self.dev, "test": self.test}[known_split(split)]
        if not path:
            raise ConfigError(f"data.{split} is not set; give the file that holds the {split} episodes")
        return read_episodes(path)

    def sentences(self) -> list[Sentence]:  # noqa: D102
        return distinct_sentences(read_episodes(self.train))


SOURCES: dict[str, type[Source]] = {
    "snips": Snips,
    "fewnerd": FewNerd,
    "episodes": EpisodeFiles,
    "mixture": Mixture,
}
