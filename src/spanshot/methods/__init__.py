"""One file per paper; ``base.py`` is the one extension point."""

from spanshot.methods.base import Method, Tagger
from spanshot.methods.convex import Convex
from spanshot.methods.esd import Esd
from spanshot.methods.matching import Matching
from spanshot.methods.metric import MetricMethod, MetricTagger
from spanshot.methods.mrc import Mrc
from spanshot.methods.nnshot import NNShot
from spanshot.methods.proto import Proto
from spanshot.methods.retriever import Retriever
from spanshot.methods.structshot import StructShot
from spanshot.methods.tapnet_cdt import TapNetCdt
from spanshot.methods.transfer import Transfer

_ALL: tuple[type[Method], ...] = (
    Esd,
    Proto,
    NNShot,
    StructShot,
    Matching,
    TapNetCdt,
    Transfer,
    Retriever,
    Convex,
    Mrc,
)
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}

__all__ = ["METHODS", "Esd", "Method", "MetricMethod", "MetricTagger", "Tagger"]
