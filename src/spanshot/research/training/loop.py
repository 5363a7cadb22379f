"""The training loop: a generator of steps. Saving, measuring and stopping are for whoever iterates."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from spanshot.research.nn.rates import rate_groups
from spanshot.research.training.settings import StageSettings


@dataclass(frozen=True, slots=True)
class Step:
    """What one optimiser step was like."""

    number: int
    loss: float
    rate: float
    """The encoder's learning rate."""
    seconds: float


class Stage:
    """A module, what it is fed, and its optimiser; together they can be put aside and taken up again.

    All chance in a step (which batch, which units are dropped) follows from the seed, the step's number and
    the process's rank, so a run that is taken up at step n goes on as if it had never stopped. The process's
    own random generators are left as they were.
    """

    def __init__(
        self,
        module: nn.Module,
        draw: Callable[[random.Random], Any],
        settings: StageSettings,
        seed: int,
        accelerator: Accelerator,
    ) -> None:
        self.settings = settings
        self.done = 0
        self._draw, self._seed, self._accelerator = draw, seed, accelerator
        self._names = {id(weight): name for name, weight in module.named_parameters()}
        groups = rate_groups(module, settings.encoder_rate, settings.head_rate)
        self._peaks = [group["lr"] for group in groups]
        optimizer = torch.optim.AdamW(groups, weight_decay=settings.weight_decay)
        self._bare = optimizer
        self._module, self._optimizer = accelerator.prepare(module, optimizer)

    def steps(self) -> Iterator[Step]:
        """Take the steps that are left."""
        while self.done < self.settings.steps:
            started = time.perf_counter()
            loss = self._step()
            self.done += 1
            yield Step(self.done, loss, self._bare.param_groups[0]["lr"], time.perf_counter() - started)

    def _step(self) -> float:
        rank = self._accelerator.process_index
        for group, peak in zip(self._bare.param_groups, self._peaks, strict=True):
            group["lr"] = peak * linear_schedule(self.done, self.settings.steps, self.settings.warmup)
        count = self.settings.batch * self.settings.accumulate
        total = torch.zeros((), device=self._accelerator.device)
        self._module.train()
        for number in range(count):
            name = f"{self._seed}/{self.done}/{rank}/{number}"
            rng = random.Random(name)
            batch = self._draw(rng)
            # Gradients of all but the last part of a step stay on their own device: one exchange per step.
            silent = self._accelerator.no_sync if number < count - 1 else _nothing
            with torch.random.fork_rng(), silent(self._module):
                torch.manual_seed(rng.getrandbits(63))
                loss = self._module(batch) / count
                self._accelerator.backward(loss)
            total += loss.detach()
        if self.settings.clip:
            self._accelerator.clip_grad_norm_(self._module.parameters(), self.settings.clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return float(self._accelerator.reduce(total, reduction="mean"))

    def state(self) -> dict[str, Tensor]:
        """The optimiser's state, by weight."""
        found = {}
        for weight, own in self._bare.state.items():
            for key, value in own.items():
                found[f"{key}/{self._names[id(weight)]}"] = value
        return found

    def restore(self, done: int, state: dict[str, Tensor]) -> None:
        """Go on after ``done`` steps. The module's weights are restored by whoever owns it."""
        self.done = done
        for group in self._bare.param_groups:
            for weight in group["params"]:
                name = self._names[id(weight)]
                own = {
                    key: state[f"{key}/{name}"] for key in ("step", "exp_avg", "exp_avg_sq") if f"{key}/{name}" in state
                }
                if own:
                    self._bare.state[weight] = own


class _nothing:  # noqa: N801 (a context manager in no_sync's place)
    def __init__(self, _: nn.Module) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def linear_schedule(done: int, steps: int, warmup: float) -> float:
    """The part of the peak rate after ``done`` of ``steps``: up over the warm-up, then down to 0.

    >>> [linear_schedule(done, 10, 0.2) for done in (0, 1, 2, 6)]
    [0.5, 1.0, 1.0, 0.5]
    """
    rising = warmup * steps
    if done < rising:
        return min(1.0, (done + 1) / rising)
    return (steps - done) / (steps - rising)
