"""Average the weights of several runs. The mean is often better on new labels than each of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

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


class WeightAverage:
    """An exponential average of the trained weights of a module.

    It follows the weights quickly at first: after n steps it changes by at most 9 / (10 + n) per step.
    """

    def __init__(self, module: nn.Module, factor: float) -> None:
        self.factor = factor
        self._weights = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
        self._average = {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def update(self, steps: int) -> None:
        """Move the average towards the present weights, after ``steps`` steps in all."""
        pace = 1 - min(self.factor, (1 + steps) / (10 + steps))
        for name, weight in self._weights.items():
            self._average[name].lerp_(weight.detach(), pace)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the module the averaged weights inside; afterwards it has its own again."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state(self) -> dict[str, Tensor]:
        """Return the averaged weights by name."""
        return dict(self._average)

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a saved average."""
        for name, average in self._average.items():
            average.copy_(state[name])

    def _swap(self) -> None:
        for name, weight in self._weights.items():
            weight.data, self._average[name] = self._average[name], weight.data
