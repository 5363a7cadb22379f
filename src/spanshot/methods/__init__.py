"""One file per paper; ``base.py`` is the one extension point."""

from spanshot.methods.base import Method, Tagger
from spanshot.methods.esd import Esd
from spanshot.methods.matching import Matching
from spanshot.methods.metric import MetricMethod, MetricTagger
from spanshot.methods.nnshot import NNShot, StructShot
from spanshot.methods.proto import Proto

METHODS: dict[str, type[Method]] = {method.name: method for method in (Esd, Proto, NNShot, StructShot, Matching)}

__all__ = ["METHODS", "Esd", "Method", "MetricMethod", "MetricTagger", "Tagger"]
