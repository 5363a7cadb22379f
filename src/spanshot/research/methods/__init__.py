"""One file per method. A method's module is imported when it is looked up, not before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from spanshot.research.learning.method import Method
from spanshot.research.learning.metric import MetricMethod, MetricTagger
from spanshot.types import SentenceTagger

_CLASSES = {
    "esd": "Esd",
    "proto": "Proto",
    "nnshot": "NNShot",
    "structshot": "StructShot",
    "matching": "Matching",
    "tapnet_cdt": "TapNetCdt",
    "transfer": "Transfer",
    "retriever": "Retriever",
    "convex": "Convex",
    "mrc": "Mrc",
    "linear": "Linear",
}
"""The class of each method, in the module with the method's name."""


class _Methods(Mapping[str, type[Method]]):
    def __getitem__(self, name: str) -> type[Method]:
        class_name = _CLASSES[name]
        method: type[Method] = getattr(import_module(f"{__name__}.{name}"), class_name)
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


METHODS: Mapping[str, type[Method]] = _Methods()
"""All methods by name."""

__all__ = ["METHODS", "Method", "MetricMethod", "MetricTagger", "SentenceTagger"]
