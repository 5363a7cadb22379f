"""Few-NERD (Ding et al. 2021): IO tags, so touching entities of one type are one entity."""

from __future__ import annotations

from pathlib import Path

from spanshot.formats.columns import read_columns
from spanshot.research.corpora.episode_files import read_episode_lines
from spanshot.types import Episode, Sentence


def read_fewnerd_text(path: str | Path) -> list[Sentence]:
    """Sentences of a ``word<TAB>label`` file, as INTRA, INTER and the supervised split are released."""
    return read_columns(path, scheme="io")


def read_fewnerd_episodes(path: str | Path) -> list[Episode]:
    """Episodes of a released file: JSON lines ``{"support": {"word", "label"}, "query": {...}, "types"}``."""
    return read_episode_lines(path)
