"""Put a trained model into the package: half precision, with the settings of its config in place of one machine's."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from spanshot.experiment import checkpoint
from spanshot.experiment.settings import RunSettings

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "embedded" / "esd.toml"
MODEL = ROOT / "src" / "spanshot" / "model"
CARD = "README.md"


def embed(run: Path, config: Path = CONFIG, folder: Path = MODEL) -> None:
    """Write the run's best checkpoint to the package's folder; the model card that lies there stays."""
    found = checkpoint.load(run)
    named = RunSettings.read(config)
    settings = replace(
        found.settings,
        data=replace(found.settings.data, folder=named.data.folder),  # type: ignore[type-var, attr-defined]
        encoder=replace(found.settings.encoder, name=named.encoder.name),
    )
    card = folder / CARD
    beside = {CARD: card.read_text(encoding="utf-8")} if card.is_file() else {}
    meta = {key: found.meta[key] for key in ("step", "dev_f1", "o_bias") if key in found.meta}
    checkpoint.save(folder, found.method.half().float(), settings, beside=beside, **meta)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}: {size:.1f} MB")


if __name__ == "__main__":
    embed(Path(sys.argv[1]))
