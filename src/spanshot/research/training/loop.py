"""The training loop: a generator of steps. Saving, evaluating and stopping are up to the caller."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from spanshot.research.nn.encoder import computing_in
from spanshot.research.nn.rates import rate_groups
from spanshot.research.training.devices import DTYPES
from spanshot.research.training.drawing import Drawn, Draws
from spanshot.research.training.settings import StageSettings

_SCALER = "scaler/"
_SCALED = ("scale", "_growth_tracker")  # the state of a scaler


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

    All randomness of an item (the episode, dropout) follows from the seed, the number of the step and the number of the
    item among those of all processes. A run that is resumed at step n therefore continues as if it had never stopped,
    and two processes compute what one does with a batch of double size. The random generators of the process keep their
    state.
    """

    def __init__(
        self,
        module: nn.Module,
        draws: Draws,
        settings: StageSettings,
        seed: int,
        accelerator: Accelerator,
        precision: str = "float32",
    ) -> None:
        self.settings = settings
        self.done = 0
        self._draws, self._seed, self._accelerator = draws, seed, accelerator
        self._dtype = DTYPES[precision]
        # Scales losses up, since gradients in half precision would often be too small.
        self._scaler = torch.amp.GradScaler(accelerator.device.type, enabled=self._dtype == torch.float16)
        groups = rate_groups(module, settings.encoder_rate, settings.head_rate)
        betas = (0.9, settings.beta2)
        fused = accelerator.device.type in ("cpu", "cuda")  # one pass over the weights instead of eight
        self._optimizer = torch.optim.AdamW(groups, betas=betas, weight_decay=settings.weight_decay, fused=fused)
        self._set_rates()
        self._module, self._prepared = accelerator.prepare(module, self._optimizer)

    def steps(self) -> Iterator[Step]:
        """Take the remaining steps."""
        items = self._draws(self._keys())
        while self.done < self.settings.steps:
            started = time.perf_counter()
            rate = self._optimizer.param_groups[0]["lr"]
            loss = self._step(items)
            self.done += 1
            self._set_rates()
            yield Step(self.done, loss, rate, time.perf_counter() - started)

    @property
    def _count(self) -> int:
        """Items per step and process."""
        return self.settings.batch * self.settings.accumulate

    def _keys(self) -> Iterator[str]:
        """Yield the keys of the items of this process, for the remaining steps."""
        first = self._accelerator.process_index * self._count
        for step in range(self.done, self.settings.steps):
            for number in range(first, first + self._count):
                yield f"{self._seed}/{step}/0/{number}"

    def _step(self, items: Iterator[Drawn]) -> float:
        accelerator, scaler = self._accelerator, self._scaler
        total = torch.zeros((), device=accelerator.device)
        self._module.train()
        for number in range(self._count):
            drawn = next(items)
            # Processes exchange gradients once per step, with its last item.
            exchange = nullcontext() if number == self._count - 1 else accelerator.no_sync(self._module)
            with seeded(drawn.seed, accelerator.device), computing_in(self._module, self._dtype), exchange:
                loss = self._module(drawn.item) / self._count
                accelerator.backward(scaler.scale(loss))
            total += loss.detach()
        scaler.unscale_(self._prepared)
        norm = None
        if self.settings.clip:
            norm = accelerator.clip_grad_norm_(self._module.parameters(), self.settings.clip)
        # A step without a finite gradient is skipped; the scaler checks that by itself.
        if scaler.is_enabled() or norm is None or bool(torch.isfinite(norm)):
            scaler.step(self._prepared)
        scaler.update()
        self._prepared.zero_grad()
        return float(accelerator.reduce(total, reduction="mean"))

    def state(self) -> dict[str, Tensor]:
        """Return the state of the optimizer as tensors named ``PARAMETER/KEY``, and that of the scaler."""
        state = self._optimizer.state_dict()["state"]
        tensors = {f"{number}/{key}": value for number, values in state.items() for key, value in values.items()}
        if self._scaler.is_enabled():
            scaler = self._scaler.state_dict()
            tensors |= {f"{_SCALER}{key}": torch.tensor(scaler[key], dtype=torch.float64) for key in _SCALED}
        return tensors

    def restore(self, done: int, state: Mapping[str, Tensor]) -> None:
        """Continue after ``done`` steps. The caller restores the weights of the module.

        The optimizer moves its state to the devices of the weights.
        """
        if self._scaler.is_enabled():
            scale, growth = (state[f"{_SCALER}{key}"].item() for key in _SCALED)
            self._scaler.load_state_dict(
                self._scaler.state_dict() | dict(zip(_SCALED, (scale, int(growth)), strict=True))
            )
        by_number: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            if name.startswith(_SCALER):
                continue
            number, _, key = name.partition("/")
            by_number.setdefault(int(number), {})[key] = value
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": by_number, "param_groups": groups})
        self.done = done
        self._set_rates()

    def _set_rates(self) -> None:
        """Set the learning rates of the next step."""
        for group in self._optimizer.param_groups:
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * rate_factor(self.settings, self.done)


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
