"""Few-NERD (Ding et al. 2021). It has IO tags, so touching entities of one type are one entity."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from spanshot.errors import DataError
from spanshot.evaluation.report import Metric
from spanshot.formats.columns import read_columns
from spanshot.research.corpora.episode_files import read_episode_lines, read_episodes
from spanshot.research.corpora.reading import read_once
from spanshot.research.corpora.sampling import FewNerdSampler
from spanshot.research.corpora.source import Source, known_split
from spanshot.types import Episode, Sentence


@dataclass(frozen=True)
class FewNerd(Source):
    """Few-NERD: training episodes sampled from train.txt, fixed dev and test episodes."""

    metric: ClassVar[Metric] = "micro_f1"

    folder: str
    """Folder of one split (INTER, INTRA) with train.txt and episodes/{dev,test}_N_K.jsonl, or {dev,test}_N_K.jsonl."""
    ways: int = 5
    """Number of labels of an episode (N)."""
    shots: int = 1
    """Minimum number of examples of each label in the support (K); the maximum is 2 K."""
    query_shots: int = 0
    """The same for the query of training episodes (0: as in the support)."""

    @override
    def training(self) -> Callable[[random.Random], Episode]:
        return FewNerdSampler(self.sentences(), self.ways, self.shots, self.query_shots or None).sample

    @override
    def episodes(self, split: str) -> list[Episode]:
        name = f"{known_split(split)}_{self.ways}_{self.shots}.jsonl"
        candidates = [Path(self.folder) / "episodes" / name, Path(self.folder) / name]
        for path in candidates:
            if path.is_file():
                return read_episodes(path)
        raise DataError(
            f"no Few-NERD episodes for {self.ways}-way {self.shots}-shot {split}; looked for "
            f"{' and '.join(map(str, candidates))}; create them with `spanshot sample`"
        )

    @override
    def sentences(self) -> list[Sentence]:
        return read_fewnerd_text(Path(self.folder) / "train.txt")


@read_once
def read_fewnerd_text(path: Path) -> list[Sentence]:
    """Read sentences of a ``word<TAB>label`` file, as INTRA, INTER and the supervised split are released."""
    return read_columns(path, scheme="io")


def read_fewnerd_episodes(path: str | Path) -> list[Episode]:
    """Read a released file of episodes: JSON lines ``{"support": {"word", "label"}, "query": {...}, "types"}``."""
    return read_episode_lines(path)
