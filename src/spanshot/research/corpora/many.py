"""A folder of many corpora as one source of pools, for a model that serves any domain."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from spanshot.errors import ConfigError, DataError, did_you_mean
from spanshot.evaluation.report import Metric
from spanshot.research.corpora.episode_files import read_episodes
from spanshot.research.corpora.mixture import READERS, files_at
from spanshot.research.corpora.pool_sampler import PoolSampler, PoolSettings
from spanshot.research.corpora.source import Source, distinct_sentences, known_split
from spanshot.research.corpora.variation import Rewording
from spanshot.research.pools import Pool
from spanshot.types import Episode, Sentence

EACH = "*"
"""The name of a part whose files are a corpus each."""
HELD_OUT = ("hwu_home_assistant", "bionlp_infectious_disease", "redocred_wikipedia")
EXCLUDED = ("user_like/*", "mit_movie*/*", "fewnerd/*/dev*", "fewnerd/*/test*", "fewnerd/*/episodes/*")


def _read_episode_sentences(path: Path) -> list[Sentence]:
    return distinct_sentences(read_episodes(path))


FILE_READERS: Mapping[str, Callable[[Path], list[Sentence]]] = {**READERS, "episodes": _read_episode_sentences}


@dataclass(frozen=True)
class ManyCorpora(PoolSettings, Source):
    """Pools of episodes from all corpora of a folder; dev and test episodes from files."""

    metric: ClassVar[Metric] = "mean_f1"

    folder: str = "data"
    """Folder that all paths are relative to."""
    parts: tuple[str, ...] = ("*=genia:corpora/*.jsonl",)
    """Corpora as NAME=FORMAT:PATH; a path may have wildcards, and the name * makes a corpus of each file. Formats: io
    and bio (columns), genia (JSON lines with tokens and entities), episodes (sentences of episode files)."""
    held_out: tuple[str, ...] = HELD_OUT
    """Corpora that are not trained on, kept for evaluation."""
    excluded: tuple[str, ...] = EXCLUDED
    """Files that are never trained on, by patterns of their paths below the folder."""
    dev: tuple[str, ...] = ("user_like/*.jsonl",)
    """Files of dev episodes. The F1 logged during training is the mean over episodes."""
    test: tuple[str, ...] = ()
    """Files of test episodes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.parts:
            raise ConfigError("parts must name at least one corpus")
        for part in self.parts:
            _parsed(part)

    @override
    def training(self) -> Callable[[random.Random], Pool]:
        return PoolSampler(self.corpora(), self)

    @override
    def episodes(self, split: str) -> list[Episode]:
        patterns = {"train": (), "dev": self.dev, "test": self.test}[known_split(split)]
        if not patterns:
            raise ConfigError(f"data.{split} is not set; many corpora have {split} episodes only from files")
        return [
            replace(episode, domain=episode.domain or file.stem)
            for pattern in patterns
            for file in files_at(Path(self.folder), pattern)
            for episode in read_episodes(file)
        ]

    @override
    def sentences(self) -> list[Sentence]:
        return [sentence for sentences in self.corpora().values() for sentence in sentences]

    def names(self) -> list[str]:
        """Return the names of the corpora that are trained on."""
        return sorted({name for name, _, _ in self._files()})

    def corpora(self) -> dict[str, list[Sentence]]:
        """Return the training sentences of each corpus, in words as raw text has them."""
        reword = Rewording()
        corpora: dict[str, dict[Sentence, None]] = {}
        for name, kind, path in self._files():
            read = (reword(sentence) for sentence in FILE_READERS[kind](path))
            corpora.setdefault(name, {}).update((sentence, None) for sentence in read if sentence)
        return {name: list(sentences) for name, sentences in corpora.items()}

    def _files(self) -> Iterator[tuple[str, str, Path]]:
        """Yield the name of the corpus, the format and the path of each training file."""
        root = Path(self.folder)
        for part in self.parts:
            name, kind, pattern = _parsed(part)
            files = [
                file
                for file in files_at(root, pattern)
                if not any(fnmatch(file.relative_to(root).as_posix(), rule) for rule in self.excluded)
            ]
            if not files:
                raise DataError.at(
                    root / pattern, None, "all its files are excluded; check data.parts and data.excluded"
                )
            for file in files:
                corpus = file.stem if name == EACH else name
                if corpus not in self.held_out:
                    yield corpus, kind, file


def _parsed(part: str) -> tuple[str, str, str]:
    """Return name, format and path of ``NAME=FORMAT:PATH``."""
    name, equals, value = part.partition("=")
    kind, colon, path = value.partition(":")
    if not (name and equals and colon and path):
        raise ConfigError(f"a part must look like NAME=FORMAT:PATH; found {part!r}")
    if kind not in FILE_READERS:
        readers = ", ".join(FILE_READERS)
        hint = did_you_mean(kind, FILE_READERS)
        raise ConfigError(f"the format of {name} must be one of {readers}; found {kind!r}{hint}")
    return name, kind, path
