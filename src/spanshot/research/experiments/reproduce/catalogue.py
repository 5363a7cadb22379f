"""All experiments, by name."""

from __future__ import annotations

from spanshot.errors import ConfigError, did_you_mean
from spanshot.research.experiments.reproduce import (
    ablation,
    efficiency,
    errors,
    fewnerd,
    nested,
    noise,
    postprocessing,
    search,
    snips,
)
from spanshot.research.experiments.reproduce.workspace import Experiment

ALL = "all"
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (snips, fewnerd, ablation, nested, postprocessing, efficiency, errors, noise, search)
}


def find_experiments(names: list[str]) -> list[Experiment]:
    """Return the experiments of these names; ``all`` stands for every one."""
    for name in names:
        if name not in EXPERIMENTS and name != ALL:
            choices = (*EXPERIMENTS, ALL)
            raise ConfigError(f"no experiment {name!r}; choose from {', '.join(choices)}{did_you_mean(name, choices)}")
    return [experiment for name, experiment in EXPERIMENTS.items() if name in names or ALL in names]
