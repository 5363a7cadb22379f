"""Evaluate fine-tuning on support sets, for several additions to the O bias (``method.finetuned_bias``).

    python tools/tune_finetuning.py MODEL EPISODES [--every N] [KEY=VALUE ...]

MODEL is a run or a checkpoint folder, EPISODES a file of dev episodes; KEY=VALUE sets how to fine-tune, such as
steps=20 or head_rate=5e-4. Prints F1 without fine-tuning, and with it for each addition to the O bias.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from spanshot.evaluation.report import Report
from spanshot.research import checkpoint
from spanshot.research.corpora.episode_files import read_episodes
from spanshot.research.experiments.evaluate import evaluate, evaluate_variants
from spanshot.research.learning.metric import MetricTagger
from spanshot.research.learning.support_finetuning import SupportFinetuning, finetuned
from spanshot.research.methods import MetricMethod
from spanshot.settings import build, override

Variant = Callable[[MetricTagger], MetricTagger]
ADDITIONS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0)


def tune(model: Path, episodes_file: Path, every: int, how: SupportFinetuning) -> None:
    """Evaluate with and without fine-tuning on every n-th episode and print both."""
    method = checkpoint.load(model).method
    assert isinstance(method, MetricMethod)
    method.settings = replace(method.settings, finetuned_bias=0.0)
    episodes = read_episodes(episodes_file)[::every]
    _show("no fine-tuning", evaluate(method, episodes))
    variants: dict[float, Variant] = {addition: partial(_bolder, addition=addition) for addition in ADDITIONS}
    reports = evaluate_variants(
        method,
        episodes,
        variants,
        watch=lambda done: print(f"\r{done}/{len(episodes)} episodes ", end="", file=sys.stderr, flush=True),
        learn=lambda learner, support: finetuned(learner, support, how).fit(support),
    )
    for addition, report in reports.items():
        _show(f"O bias + {addition:g}", report)


def _bolder(tagger: MetricTagger, addition: float) -> MetricTagger:
    return replace(tagger, o_bias=tagger.o_bias + addition)


def _show(title: str, report: Report) -> None:
    scores = (100 * score for score in (report.micro_f1, report.precision, report.recall))
    print("{}: F1 {:.2f}  P {:.2f}  R {:.2f}".format(title, *scores), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("episodes", type=Path)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--every", type=int, default=1, help="evaluate only every n-th episode")
    options = parser.parse_args()
    tune(options.model, options.episodes, options.every, build(SupportFinetuning, override({}, options.settings)))
