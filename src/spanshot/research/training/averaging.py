"""The mean of several runs' weights: one model that is often better on new labels than any of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from spanshot.errors import ConfigError
from spanshot.research.methods import Method


def mean_of(methods: Sequence[Method]) -> Method:
    """A method like the last, with the mean of all their weights: for runs that grew out of one another."""
    mean = copy.deepcopy(methods[-1])
    states = [method.state_dict() for method in methods]
    own = states[-1]
    shapes = [{name: weight.shape for name, weight in state.items()} for state in states]
    if any(one != shapes[-1] for one in shapes):
        raise ConfigError("only models of the same method, encoder and sizes have a mean")
    mean.load_state_dict(
        {
            name: torch.stack([state[name] for state in states]).mean(0) if weight.is_floating_point() else weight
            for name, weight in own.items()
        }
    )
    return mean
