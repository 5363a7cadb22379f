"""Regular expressions in a tokenizer file: simple ones are accepted, those that can take exponential time are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spanshot.engine.pieces import read_tokenizer
from spanshot.errors import ConfigError


def content(pattern: str) -> bytes:
    replace = {"type": "Replace", "pattern": {"Regex": pattern}, "content": "x"}
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    return json.dumps({"version": "1.0", "added_tokens": [], "normalizer": replace, "model": model}).encode()


@pytest.mark.parametrize("pattern", ["(a|a)*$", "(a+)+$", "a*a*$"])
def test_a_pattern_that_can_take_exponential_time_is_refused(pattern):
    with pytest.raises(ConfigError, match=r"tokenizer\.json: .*is not supported"):
        read_tokenizer(content(pattern), Path("tokenizer.json"))


@pytest.mark.parametrize("pattern", [" {2,}", r"\s+", "[0-9]"])
def test_a_simple_pattern_is_accepted(pattern):
    assert read_tokenizer(content(pattern), Path("tokenizer.json")).encode("word").tokens == ["[UNK]"]
