"""A training run from settings to the best checkpoint: a generator of events that fills a run folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn

from spanshot.allocator import give_back_memory
from spanshot.errors import ConfigError
from spanshot.research.checkpoint import new_method, save
from spanshot.research.methods import MetricMethod
from spanshot.research.training.averaging import WeightAverage
from spanshot.research.training.dev import evaluate_on_dev, evenly_spaced
from spanshot.research.training.devices import check_precision, default_accelerator
from spanshot.research.training.drawing import Draws, EpisodeWorkers, in_process
from spanshot.research.training.events import Evaluated, Event, Finished, MetricsFile, Stepped
from spanshot.research.training.folder import BEST, check_unfinished, write_result, write_settings
from spanshot.research.training.loop import Stage, seeded
from spanshot.research.training.settings import RunSettings, StageSettings
from spanshot.research.training.state import Progress, State, read_state, remove_state, write_state
from spanshot.types import Sentence

PRETRAIN, TRAIN = "pretrain", "train"


def run_training(settings: RunSettings, folder: Path, accelerator: Accelerator | None = None) -> Iterator[Event]:
    """Train a model, or resume an interrupted run. Only the main process writes to the folder."""
    check_unfinished(settings, folder)
    accelerator = accelerator or default_accelerator()
    check_precision(settings.train.precision, accelerator.device)
    workers = EpisodeWorkers(settings.data, settings.train.workers) if settings.train.workers else None
    try:
        run = _Run(settings, folder, accelerator, workers or in_process(settings.data.training()))
        if workers:
            workers.wait()
    except BaseException:
        if workers:
            workers.close()
        raise
    return _closing(run.events(), workers)


def _closing(events: Iterator[Event], workers: EpisodeWorkers | None) -> Iterator[Event]:
    """Yield the events of a run and end its workers with it."""
    try:
        yield from events
    finally:
        if workers:
            workers.close()


class _Run:
    """The parts of a run and its progress."""

    def __init__(self, settings: RunSettings, folder: Path, accelerator: Accelerator, draws: Draws) -> None:
        self.settings, self.folder, self.accelerator = settings, folder, accelerator
        self.phases = [PRETRAIN, TRAIN] if settings.pretrain.steps else [TRAIN]
        self.dev = evenly_spaced(settings.data.episodes("dev"), settings.train.dev_episodes)
        self.draws = draws
        self.metrics = MetricsFile(folder)
        with seeded(settings.seed, accelerator.device):
            self.method = new_method(settings).to(accelerator.device)
        self.average: WeightAverage | None = None
        self.progress = Progress(self.phases[0])
        self.since = time.perf_counter()

    def events(self) -> Iterator[Event]:
        state = read_state(self.folder)
        if state is not None:
            self.progress = state.progress
        self._check_same_start()  # all have read the state before the main process writes another
        if self.accelerator.is_main_process:
            write_settings(self.settings, self.folder)
            self.metrics.trim(self.phases, self.progress.phase, self.progress.done)
        self.method.compute_statistics(self._sentences())
        for phase in self.phases[self.phases.index(self.progress.phase) :]:
            if phase != self.progress.phase:
                self.progress = Progress(phase, seconds=self.progress.seconds)
                state = None
            module, stage = self._open(phase)
            if state is not None:
                module.load_state_dict(state.module)
                stage.restore(state.progress.done, state.optimizer)
                if self.average:
                    self.average.restore(state.average)
            yield from self._train(module, stage)
        yield self._finish()

    def _check_same_start(self) -> None:
        """Wait until all processes have come here; refuse to train if they do not start from the same step."""
        starts: list[tuple[str, int]] = gather_object([(self.progress.phase, self.progress.done)])
        if len(set(starts)) > 1:
            raise ConfigError(
                f"{self.folder}: the processes do not read the same state of the run; "
                "the folder must be on a file system that all machines share"
            )

    def _open(self, phase: str) -> tuple[nn.Module, Stage]:
        """Return the module that a phase trains, and its stage."""
        settings = self.settings
        if phase == TRAIN:
            if settings.train.average:
                self.average = WeightAverage(self.method, settings.train.average)
            return self.method, self._stage(self.method, self.draws, settings.train)
        with seeded(settings.seed, self.accelerator.device):
            pretraining = self.method.pretraining(settings.data.sentences(), settings.pretrain.batch)
        if pretraining is None:
            raise ConfigError(f"{settings.model.method_name} has no pretraining; set pretrain.steps=0")
        module = pretraining.module.to(self.accelerator.device)
        return module, self._stage(module, in_process(pretraining.draw), replace(settings.pretrain, batch=1))

    def _stage(self, module: nn.Module, draws: Draws, stage: StageSettings) -> Stage:
        return Stage(module, draws, stage, self.settings.seed, self.accelerator, self.settings.train.precision)

    def _sentences(self) -> Iterator[Sentence]:
        """Iterate over the source corpus, which is read on the first access: most methods need none of it."""
        yield from self.settings.data.sentences()

    def _train(self, module: nn.Module, stage: Stage) -> Iterator[Event]:
        settings, phase = self.settings.train, self.progress.phase
        if self._is_exhausted():
            return
        for step in stage.steps():
            if self.average:
                self.average.update(step.number)
            if settings.trim_every and step.number % settings.trim_every == 0:
                give_back_memory()
            self._tick(step.number)
            yield self._record(Stepped(phase, step.number, stage.settings.steps, step.loss, step.rate, step.seconds))
            last = step.number == stage.settings.steps
            evaluates = phase == TRAIN and (last or step.number % settings.evaluate_every == 0)
            if evaluates:
                with self.average.applied() if self.average else nullcontext():
                    evaluated = self._evaluate(step.number)
                yield self._record(evaluated)
            if evaluates or last or step.number % settings.save_every == 0:
                self._save(module, stage)
            if self._is_exhausted():
                return

    def _is_exhausted(self) -> bool:
        patience = self.settings.train.patience
        return bool(patience) and self.progress.evaluations_since_best >= patience

    def _evaluate(self, step: int) -> Evaluated:
        settings, metric = self.settings.train, self.settings.data.metric
        calibration = evaluate_on_dev(self.method, self.dev, settings.o_biases, metric, self.accelerator)
        o_bias = calibration.o_bias
        f1 = calibration.score(o_bias)
        if isinstance(self.method, MetricMethod):
            self.method.o_bias.fill_(o_bias)
        best = f1 > self.progress.best_f1 or settings.keep == "last"
        if best:
            self.progress = replace(self.progress, best_step=step, best_f1=f1, o_bias=o_bias, evaluations_since_best=0)
            if self.accelerator.is_main_process:
                record = {**self.settings.to_table(), "result": {"step": step, "dev_f1": f1, "o_bias": o_bias}}
                save(self.folder / BEST, self.method, self.settings.model, record=record)
        else:
            count = self.progress.evaluations_since_best + 1
            self.progress = replace(self.progress, evaluations_since_best=count)
        return Evaluated(TRAIN, step, f1, o_bias, calibration.score(0.0), best)

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
            average = self.average.state() if self.average else {}
            write_state(self.folder, State(self.progress, dict(module.state_dict()), stage.state(), average))

    def _finish(self) -> Finished:
        self._tick(self.progress.done)
        progress = self.progress
        stopped_early = progress.done < self.settings.train.steps
        result = Finished(progress.best_step, progress.best_f1, progress.o_bias, stopped_early, progress.seconds)
        if self.accelerator.is_main_process:
            write_result(result, self.folder)
            remove_state(self.folder)
        return result
