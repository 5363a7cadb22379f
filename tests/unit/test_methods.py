"""The table of methods: names, classes, and what is imported when."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spanshot.research.methods import METHODS, Method


def test_every_method_is_listed_under_its_own_name():
    assert {name: method.name for name, method in METHODS.items()} == {name: name for name in METHODS}
    assert all(issubclass(method, Method) for method in METHODS.values())
    assert len(METHODS) == 11  # ten published ones and `linear`


def test_every_method_names_its_paper_and_its_departures():
    for name, method in METHODS.items():
        if name != "linear":  # our own, so there is nothing to depart from
            assert "Departures" in (method.__doc__ or ""), name
        opening = sys.modules[method.__module__].__doc__ or ""
        assert any(str(year) in opening for year in range(2016, 2023)), name


def test_an_unknown_method_is_a_missing_key():
    assert "spanbert" not in METHODS
    with pytest.raises(KeyError):
        METHODS["spanbert"]


def test_only_the_method_that_is_asked_for_is_imported():
    program = """
import sys
from spanshot.research.model_settings import ModelSettings

ModelSettings.of({"method": {"name": "proto"}})
found = {name for name in sys.modules if name.startswith("spanshot.research.methods.")}
sys.exit(0 if found == {"spanshot.research.methods.proto"} else f"imported: {sorted(found)}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
