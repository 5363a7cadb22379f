"""A search with optuna that can be killed at any time: trials are recorded in a journal, their runs resume."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spanshot.errors import ConfigError
from spanshot.json_text import Fields, JsonObject, JsonValue
from spanshot.research.experiments.reproduce.jobs import Count
from spanshot.research.training.events import Evaluated
from spanshot.research.training.folder import read_result
from spanshot.research.training.run import run_training
from spanshot.research.training.settings import RunSettings
from spanshot.settings import Table

if TYPE_CHECKING:
    import optuna

JOURNAL = "journal.log"
FINISHED, ABANDONED = "finished", "abandoned"
UNPRUNED_TRIALS = 3
"""Trials that always run to their end, to compare later ones with."""


@dataclass(frozen=True)
class Trial:
    """A trial: its values, its best dev F1, and whether it was abandoned early."""

    number: int
    values: dict[str, float]
    f1: float
    state: str

    def to_dict(self) -> dict[str, JsonValue]:
        """Return all fields for JSON."""
        return {"number": self.number, "values": dict(self.values), "f1": self.f1, "state": self.state}

    @classmethod
    def from_dict(cls, record: JsonValue) -> Trial:
        """Read what `to_dict` returned."""
        fields = Fields.of(record)
        values = fields.object("values")
        numbers = {key: values.number(key) for key in values.record}
        return cls(fields.integer("number"), numbers, fields.number("f1"), fields.text("state"))


class Study:
    """Searches a grid by TPE, and abandons trials that are below the median of the earlier ones."""

    def __init__(
        self,
        folder: Path,
        table: Table,
        grid: Mapping[str, Sequence[float]],
        first: Mapping[str, float],
        seed: int,
    ) -> None:
        if importlib.util.find_spec("optuna") is None:
            raise ConfigError("the search needs optuna; install it with `pip install 'spanshot[reproduce]'`")
        self.folder, self.table, self.grid, self.first, self.seed = folder, table, grid, first, seed

    def run(self, trials: int, count: Count) -> list[Trial]:
        """Run trials until there are ``trials``, and return all of them."""
        import optuna
        from optuna.trial import TrialState

        study = self._open()
        if not study.trials:
            study.enqueue_trial(dict(self.first))
        while True:
            unfinished = [trial for trial in study.trials if trial.state == TrialState.RUNNING]
            done = len([trial for trial in study.trials if trial.state.is_finished()])
            if done >= trials:
                break
            # A sampler of its own for each trial: the same trials follow, wherever the search was interrupted.
            study.sampler = optuna.samplers.TPESampler(seed=1000 * self.seed + done)
            trial = optuna.trial.Trial(study, unfinished[0]._trial_id) if unfinished else study.ask()
            self._work(study, trial, partial(_count_share, count, done, trials))
        return [self._outcome(trial) for trial in study.trials if trial.state.is_finished()][:trials]

    def _open(self) -> optuna.Study:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / JOURNAL
        _drop_torn_line(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            storage = JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path))))
        return optuna.create_study(
            study_name="spanshot",
            storage=storage,
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIALS),
            load_if_exists=True,
        )

    def _work(self, study: optuna.Study, trial: optuna.Trial, watch: Callable[[float], None]) -> None:
        import optuna

        values = {key: trial.suggest_categorical(key, list(options)) for key, options in self.grid.items()}
        settings = RunSettings.of(_changed(self.table, values))
        folder = self.folder / f"trial-{trial.number}"
        best = -1.0
        if (result := read_result(folder)) is not None:
            study.tell(trial.number, result.best_f1)
            return
        for event in run_training(settings, folder):
            if not isinstance(event, Evaluated):
                continue
            best = max(best, event.dev_f1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a step that was reported before the kill
                trial.report(event.dev_f1, event.step)
            watch(event.step / settings.train.steps)
            if event.step < settings.train.steps and trial.should_prune():
                study.tell(trial.number, state=optuna.trial.TrialState.PRUNED)
                return
        result = read_result(folder)
        study.tell(trial.number, result.best_f1 if result else best)

    def _outcome(self, trial: optuna.trial.FrozenTrial) -> Trial:
        import optuna

        abandoned = trial.state == optuna.trial.TrialState.PRUNED
        reported = list(trial.intermediate_values.values())
        f1 = max(reported) if abandoned else float(trial.value or 0.0)
        values = {key: float(trial.params[key]) for key in self.grid}
        return Trial(trial.number, values, f1, ABANDONED if abandoned else FINISHED)


def _count_share(count: Count, done: int, trials: int, share: float) -> None:
    count(round(100 * (done + share)), 100 * trials)


def _changed(table: Table, values: JsonObject) -> Table:
    changed: Table = {key: dict(value) if isinstance(value, dict) else value for key, value in table.items()}
    for key, value in values.items():
        section, _, name = key.partition(".")
        changed[section][name] = value
    return changed


def _drop_torn_line(path: Path) -> None:
    """Remove a last line that a kill cut short, and a lock that it left."""
    for lock in path.parent.glob(f"{path.name}.lock*"):
        lock.unlink(missing_ok=True)
    if not path.is_file():
        return
    content = path.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    if complete != content:
        path.write_bytes(complete)
