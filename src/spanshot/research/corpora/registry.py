"""The corpora that settings can name. Their modules are imported when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from typing_extensions import override

from spanshot.research.corpora.source import Source


class _Sources(Mapping[str, type[Source]]):
    """Maps the name of a corpus to its settings class."""

    def __init__(self, classes: Mapping[str, tuple[str, str]]) -> None:
        self._classes = classes

    @override
    def __getitem__(self, name: str) -> type[Source]:
        module, attribute = self._classes[name]
        source: type[Source] = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
        return source

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    @override
    def __len__(self) -> int:
        return len(self._classes)

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._classes


SOURCES: Mapping[str, type[Source]] = _Sources(
    {
        "snips": ("snips", "Snips"),
        "fewnerd": ("fewnerd", "FewNerd"),
        "episodes": ("episode_files", "EpisodeFiles"),
        "mixture": ("mixture", "Mixture"),
        "many": ("many", "ManyCorpora"),
    }
)
