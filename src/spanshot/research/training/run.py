"""A training run from settings to the best checkpoint: a generator of events over a run folder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from spanshot.research.checkpoint import new_method, save
from spanshot.research.experiments.evaluate import Calibration, evaluate, evaluate_biases
from spanshot.research.methods import MetricMethod
from spanshot.research.training.events import Evaluated, Event, Finished, MetricsFile, Stepped
from spanshot.research.training.folder import BEST, check_unfinished, write_result, write_settings
from spanshot.research.training.loop import Stage
from spanshot.research.training.settings import RunSettings, StageSettings
from spanshot.research.training.state import Progress, State, read_state, remove_state, write_state
from spanshot.research.training.warm_start import SpanClassifier, batches, labels_of
from spanshot.types import Episode, Sentence

WARM_START, TRAIN = "warm_start", "train"


def run_training(settings: RunSettings, folder: Path, accelerator: Accelerator | None = None) -> Iterator[Event]:
    """Train as the settings say, or go on where an earlier call was stopped. Only the main process writes."""
    check_unfinished(settings, folder)
    return _Run(settings, folder, accelerator or Accelerator()).events()


class _Run:
    """What the parts of a run share."""

    def __init__(self, settings: RunSettings, folder: Path, accelerator: Accelerator) -> None:
        self.settings, self.folder, self.accelerator = settings, folder, accelerator
        self.phases = [WARM_START, TRAIN] if settings.warm_start.steps else [TRAIN]
        self.dev = _spread(settings.data.episodes("dev"), settings.train.dev_episodes)
        self.draw = settings.data.training()
        self.metrics = MetricsFile(folder)
        with torch.random.fork_rng():
            torch.manual_seed(settings.seed)
            self.method = new_method(settings).to(accelerator.device)
        self.progress = Progress(self.phases[0])
        self.opened = False
        self.since = time.perf_counter()

    def events(self) -> Iterator[Event]:
        state = read_state(self.folder)
        if state is not None:
            self.progress = state.progress
        if self.accelerator.is_main_process:
            write_settings(self.settings, self.folder)
            self.metrics.trim(self.phases, self.progress.phase, self.progress.done)
        for phase in self.phases[self.phases.index(self.progress.phase) :]:
            if phase != self.progress.phase:
                self.progress = Progress(phase, seconds=self.progress.seconds)
                state = None
            module, stage = self._open(phase)
            if state is not None:
                module.load_state_dict(state.module)
                stage.restore(state.progress.done, state.optimizer)
            yield from self._go(module, stage)
        yield self._finish()

    def _open(self, phase: str) -> tuple[nn.Module, Stage]:
        """What is trained in a phase, and its stage."""
        first = not self.opened
        self.opened = True
        if first:  # also where a run is taken up again in its last phase
            self.method.study(self._sentences())
        module: nn.Module = self.method
        draw: Any = self.draw
        settings: StageSettings = self.settings.train
        if phase == WARM_START:
            with torch.random.fork_rng():
                torch.manual_seed(self.settings.seed)
                sentences, size = self.settings.data.sentences(), self.settings.warm_start.batch
                own = self.method.pretraining(sentences, size)
                module, draw = own or (SpanClassifier(self.method, labels_of(sentences)), batches(sentences, size))
                module = module.to(self.accelerator.device)
            settings = replace(self.settings.warm_start, batch=1)
        return module, Stage(module, draw, settings, self.settings.seed, self.accelerator)

    def _sentences(self) -> Iterator[Sentence]:
        """Those of the source corpus, which is read once the first of them is asked for: most methods never do."""
        yield from self.settings.data.sentences()

    def _go(self, module: nn.Module, stage: Stage) -> Iterator[Event]:
        own, phase = self.settings.train, self.progress.phase
        if self._exhausted():
            return
        for step in stage.steps():
            self._tick(step.number)
            yield self._record(Stepped(phase, step.number, stage.settings.steps, step.loss, step.rate, step.seconds))
            last = step.number == stage.settings.steps
            look = phase == TRAIN and (last or step.number % own.evaluate_every == 0)
            if look:
                yield self._record(self._evaluate(step.number))
            if look or last or step.number % own.save_every == 0:
                self._save(module, stage)
            if self._exhausted():
                return

    def _exhausted(self) -> bool:
        patience = self.settings.train.patience
        return bool(patience) and self.progress.looks_since_best >= patience

    def _evaluate(self, step: int) -> Evaluated:
        own, metric = self.settings.train, self.settings.data.metric
        if isinstance(self.method, MetricMethod):
            looked = evaluate_biases(self.method, self.dev, own.o_biases, metric)
            self.method.o_bias.fill_(looked.o_bias)
        else:
            looked = Calibration({0.0: evaluate(self.method, self.dev)}, metric)
        o_bias, f1 = looked.o_bias, looked.score(looked.o_bias)
        best = f1 > self.progress.best_f1 or own.keep == "last"
        if best:
            self.progress = replace(self.progress, best_step=step, best_f1=f1, o_bias=o_bias, looks_since_best=0)
            if self.accelerator.is_main_process:
                save(self.folder / BEST, self.method, self.settings, step=step, dev_f1=f1, o_bias=o_bias)
        else:
            self.progress = replace(self.progress, looks_since_best=self.progress.looks_since_best + 1)
        return Evaluated(TRAIN, step, f1, o_bias, looked.score(0.0), best)

    def _tick(self, done: int) -> None:
        now = time.perf_counter()
        self.progress = replace(self.progress, done=done, seconds=self.progress.seconds + now - self.since)
        self.since = now

    def _record(self, event: Stepped | Evaluated) -> Stepped | Evaluated:
        if self.accelerator.is_main_process:
            self.metrics.record(event)
        return event

    def _save(self, module: nn.Module, stage: Stage) -> None:
        if self.accelerator.is_main_process:
            write_state(self.folder, State(self.progress, dict(module.state_dict()), stage.state()))

    def _finish(self) -> Finished:
        self._tick(self.progress.done)
        at = self.progress
        ended = Finished(at.best_step, at.best_f1, at.o_bias, at.done < self.settings.train.steps, at.seconds)
        if self.accelerator.is_main_process:
            write_result(ended, self.folder)
            remove_state(self.folder)
        return ended


def _spread(episodes: Sequence[Episode], most: int) -> list[Episode]:
    """At most so many of the episodes, evenly spread; all for 0."""
    if not most or most >= len(episodes):
        return list(episodes)
    return [episodes[number * len(episodes) // most] for number in range(most)]
