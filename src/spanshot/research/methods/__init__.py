"""One file per paper; ``base.py`` is the one extension point."""

from spanshot.research.learning.method import Method, SentenceTagger
from spanshot.research.learning.metric import MetricMethod, MetricTagger
from spanshot.research.methods.convex import Convex
from spanshot.research.methods.esd import Esd
from spanshot.research.methods.matching import Matching
from spanshot.research.methods.mrc import Mrc
from spanshot.research.methods.nnshot import NNShot
from spanshot.research.methods.proto import Proto
from spanshot.research.methods.retriever import Retriever
from spanshot.research.methods.structshot import StructShot
from spanshot.research.methods.tapnet_cdt import TapNetCdt
from spanshot.research.methods.transfer import Transfer

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

__all__ = ["METHODS", "Esd", "Method", "MetricMethod", "MetricTagger", "SentenceTagger"]
