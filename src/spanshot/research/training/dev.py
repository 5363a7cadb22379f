"""Evaluate a model on the dev split during training, with the work shared by all processes."""

from __future__ import annotations

from collections.abc import Sequence

from accelerate import Accelerator
from accelerate.utils import gather_object

from spanshot.evaluation.report import Metric, Report
from spanshot.research.experiments.evaluate import Calibration, evaluate, evaluate_biases, merged
from spanshot.research.methods import Method, MetricMethod
from spanshot.types import Episode


def evaluate_on_dev(
    method: Method,
    episodes: Sequence[Episode],
    o_biases: Sequence[float],
    metric: Metric,
    accelerator: Accelerator,
) -> Calibration:
    """Evaluate the method for each O bias. Every process evaluates a share; all get the same result."""
    share = episodes[accelerator.process_index :: accelerator.num_processes]
    if isinstance(method, MetricMethod):
        reports = dict(evaluate_biases(method, share, o_biases, metric).reports)
    else:
        reports = {0.0: evaluate(method, share)}
    parts: list[dict[float, Report]] = gather_object([reports])
    return Calibration({bias: merged([part[bias] for part in parts]) for bias in reports}, metric)


def evenly_spaced(episodes: Sequence[Episode], limit: int) -> list[Episode]:
    """Return at most ``limit`` episodes, evenly spaced (0: all)."""
    if not limit or limit >= len(episodes):
        return list(episodes)
    return [episodes[number * len(episodes) // limit] for number in range(limit)]
