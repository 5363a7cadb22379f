"""One file per paper; ``base.py`` is the one extension point."""

from spanshot.methods.base import Method, MetricMethod, MetricTagger, Tagger
from spanshot.methods.esd import Esd

METHODS: dict[str, type[Method]] = {method.name: method for method in (Esd,)}

__all__ = ["METHODS", "Esd", "Method", "MetricMethod", "MetricTagger", "Tagger"]
