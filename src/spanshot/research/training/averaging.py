"""Average the weights of several runs. The mean is often better on new labels than each of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from spanshot.errors import ConfigError
from spanshot.research.methods import Method


def mean_of(methods: Sequence[Method]) -> Method:
    """Return a copy of the last method with the mean weights of all, for runs that continued one another."""
    mean = copy.deepcopy(methods[-1])
    states = [method.state_dict() for method in methods]
    last = states[-1]
    shapes = [{name: weight.shape for name, weight in state.items()} for state in states]
    if any(shape_table != shapes[-1] for shape_table in shapes):
        raise ConfigError("only models of the same method, encoder and sizes can be averaged")
    mean.load_state_dict(
        {
            name: torch.stack([state[name] for state in states]).mean(0) if weight.is_floating_point() else weight
            for name, weight in last.items()
        }
    )
    return mean
