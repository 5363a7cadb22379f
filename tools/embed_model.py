"""Put a trained model into the package: half precision, with the settings of its config in place of one machine's.

    python tools/embed_model.py RUN...

Of several runs, the mean of their weights is taken. The O bias is tuned anew, on all of the last run's dev episodes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from spanshot.research import checkpoint
from spanshot.research.experiments.evaluate import evaluate_biases
from spanshot.research.methods import MetricMethod
from spanshot.research.training.averaging import mean_of
from spanshot.research.training.settings import RunSettings

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "embedded" / "esd-more.toml"
MODEL = ROOT / "src" / "spanshot" / "model_files"
CARD = "README.md"


def embed(runs: Sequence[Path], config: Path = CONFIG, folder: Path = MODEL) -> None:
    """Write what the runs have learned to the package's folder; the model card that lies there stays."""
    found = [checkpoint.load(run) for run in runs]
    own, named = found[-1].settings, RunSettings.read(config)
    method = checkpoint.reopened(mean_of([one.method for one in found]).half().float(), named)
    assert isinstance(method, MetricMethod)
    looked = evaluate_biases(method, own.data.episodes("dev"), own.train.o_biases, own.data.metric)
    method.o_bias.fill_(looked.o_bias)
    score = looked.score(looked.o_bias)
    print(f"dev F1 {100 * score:.2f} with O bias {looked.o_bias:g}, {100 * looked.score(0.0):.2f} without")
    card = folder / CARD
    beside = {CARD: card.read_text(encoding="utf-8")} if card.is_file() else {}
    checkpoint.save(folder, method, named, beside=beside, dev_f1=score, o_bias=looked.o_bias)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}: {size:.1f} MB")


if __name__ == "__main__":
    embed([Path(run) for run in sys.argv[1:]])
