"""Put a trained model into the package: in half precision, with the settings of its config.

    python tools/embed_model.py RUN...
    python tools/embed_model.py --refresh

The weights of several runs are averaged. The O bias is tuned again, on all dev episodes of the last run. ``--refresh``
writes new digests after the settings in ``model.toml`` or ``training.toml`` were edited by hand, and loads the model.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from spanshot.manifest import Manifest, StoredFile
from spanshot.research import checkpoint
from spanshot.research.experiments.evaluate import evaluate_biases
from spanshot.research.methods import MetricMethod
from spanshot.research.training.averaging import mean_of
from spanshot.research.training.settings import RunSettings

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "embedded" / "esd-more.toml"
MODEL = ROOT / "src" / "spanshot" / "model_files"


def embed(runs: Sequence[Path], config: Path = CONFIG, folder: Path = MODEL) -> None:
    """Write the model of the runs to the package's folder; the model card in it stays."""
    methods = [checkpoint.load(run).method for run in runs]
    record = checkpoint.read_record(runs[-1])
    trained = RunSettings.of({name: value for name, value in record.items() if name != "result"})
    named = RunSettings.read(config)
    method = checkpoint.reopened(mean_of(methods).half().float(), named.model)
    assert isinstance(method, MetricMethod)
    calibration = evaluate_biases(method, trained.data.episodes("dev"), trained.train.o_biases, trained.data.metric)
    method.o_bias.fill_(calibration.o_bias)
    score = calibration.score(calibration.o_bias)
    print(f"dev F1 {100 * score:.2f} with O bias {calibration.o_bias:g}, {100 * calibration.score(0.0):.2f} without")
    result = {"dev_f1": score, "o_bias": calibration.o_bias}
    checkpoint.save(folder, method, named.model, record={**named.to_table(), "result": result})
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}: {size:.1f} MB")


def refresh(folder: Path = MODEL) -> None:
    """Write the digests of the files as they are, and check that the model can be loaded."""
    manifest = Manifest.read(folder)
    files = {
        name: StoredFile.of(stored.file, (folder / stored.file).read_bytes()) for name, stored in manifest.files.items()
    }
    Manifest(manifest.kind, files, ()).write(folder)
    checkpoint.load(folder)


if __name__ == "__main__":
    if sys.argv[1:] == ["--refresh"]:
        refresh()
    else:
        embed([Path(run) for run in sys.argv[1:]])
