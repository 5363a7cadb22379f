"""Names of labels as words that an encoder can read; see `spanshot.engine.names`."""

from spanshot.engine.names import in_words

__all__ = ["in_words"]
