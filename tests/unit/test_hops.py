"""The way from text to entity stays short enough to be read."""

from __future__ import annotations

import count_hops
import spanshot


def _size(codes):
    return len(codes), len({code.co_filename for code in codes})


def test_learning_and_tagging_run_through_few_functions_and_files():
    spanshot.learn(count_hops.EXAMPLES)  # fills caches
    tagger, learning = count_hops.functions_of(lambda: spanshot.learn(count_hops.EXAMPLES))
    tagger(count_hops.TEXT)
    entities, tagging = count_hops.functions_of(lambda: tagger(count_hops.TEXT))
    assert entities
    functions, files = _size(learning)
    assert functions <= 30
    assert files <= 9
    functions, files = _size(tagging)
    assert functions <= 27
    assert files <= 8
