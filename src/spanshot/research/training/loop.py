"""The training loop: a generator of steps. Saving, evaluating and stopping are up to the caller."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from spanshot.research.nn.rates import rate_groups
from spanshot.research.training.settings import StageSettings


@dataclass(frozen=True, slots=True)
class Step:
    """An optimizer step."""

    number: int
    loss: float
    rate: float
    """The encoder's learning rate."""
    seconds: float


class Stage:
    """One stage of training: a module, its batches and its optimizer. Can be saved and resumed.

    All randomness of a step (batches, dropout) follows from the seed, the number of the step and the rank of the
    process. A run that is resumed at step n therefore continues as if it had never stopped. The random generators of
    the process keep their state.
    """

    def __init__(
        self,
        module: nn.Module,
        draw: Callable[[random.Random], object],
        settings: StageSettings,
        seed: int,
        accelerator: Accelerator,
    ) -> None:
        self.settings = settings
        self.done = 0
        self._draw, self._seed, self._accelerator = draw, seed, accelerator
        groups = rate_groups(module, settings.encoder_rate, settings.head_rate)
        betas = (0.9, settings.beta2)
        self._optimizer = torch.optim.AdamW(groups, betas=betas, weight_decay=settings.weight_decay)
        self._schedule = self._schedule_after(0)
        self._module, self._prepared = accelerator.prepare(module, self._optimizer)

    def steps(self) -> Iterator[Step]:
        """Take the remaining steps."""
        while self.done < self.settings.steps:
            started = time.perf_counter()
            rate = self._optimizer.param_groups[0]["lr"]
            loss = self._step()
            self.done += 1
            yield Step(self.done, loss, rate, time.perf_counter() - started)

    def _step(self) -> float:
        accelerator = self._accelerator
        count = self.settings.batch * self.settings.accumulate
        total = torch.zeros((), device=accelerator.device)
        self._module.train()
        for number in range(count):
            rng = random.Random(f"{self._seed}/{self.done}/{accelerator.process_index}/{number}")
            batch = self._draw(rng)
            # Processes exchange gradients once per step, with its last batch.
            exchange = nullcontext() if number == count - 1 else accelerator.no_sync(self._module)
            with seeded(rng.getrandbits(63), accelerator.device), exchange:
                loss = self._module(batch) / count
                accelerator.backward(loss)
            total += loss.detach()
        norm = None
        if self.settings.clip:
            norm = accelerator.clip_grad_norm_(self._module.parameters(), self.settings.clip)
        if norm is None or bool(torch.isfinite(norm)):  # a step without a finite gradient is skipped
            self._prepared.step()
        self._prepared.zero_grad()
        self._schedule.step()
        return float(accelerator.reduce(total, reduction="mean"))

    def state(self) -> dict[str, Tensor]:
        """Return the state of the optimizer as tensors named ``PARAMETER/KEY``."""
        state = self._optimizer.state_dict()["state"]
        return {f"{number}/{key}": value for number, values in state.items() for key, value in values.items()}

    def restore(self, done: int, state: Mapping[str, Tensor]) -> None:
        """Continue after ``done`` steps. The caller restores the weights of the module.

        The optimizer moves its state to the devices of the weights.
        """
        by_number: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            number, _, key = name.partition("/")
            by_number.setdefault(int(number), {})[key] = value
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": by_number, "param_groups": groups})
        self._schedule = self._schedule_after(done)
        self.done = done

    def _schedule_after(self, done: int) -> LambdaLR:
        for group in self._optimizer.param_groups:
            group["lr"] = group.setdefault("initial_lr", group["lr"])
        return LambdaLR(self._optimizer, partial(rate_factor, self.settings), last_epoch=done - 1)


def rate_factor(settings: StageSettings, step: int) -> float:
    """Return the share of the peak learning rates after ``step`` steps.

    >>> settings = StageSettings(steps=100, warmup=0.1, decay=0.5)
    >>> [rate_factor(settings, step) for step in (5, 10, 50, 75, 100)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    rising = round(settings.warmup * settings.steps)
    falling = min(round(settings.decay * settings.steps), settings.steps - rising)
    if step < rising:
        return step / rising
    return min(1.0, (settings.steps - step) / falling) if falling else 1.0


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch within the block, and restore its generators afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
