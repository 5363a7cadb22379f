"""What a run tells of itself while it goes on, and the files that remember it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spanshot.files import write_text

METRICS = "metrics.jsonl"


@dataclass(frozen=True, slots=True)
class Stepped:
    """An optimiser step was taken: number ``step`` of ``of``."""

    phase: str
    step: int
    of: int
    loss: float
    rate: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The dev split was looked at after ``step`` steps. F1 is after refining."""

    phase: str
    step: int
    dev_f1: float
    o_bias: float
    dev_f1_unbiased: float
    best: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The run has ended, with its best checkpoint at ``best_step``."""

    best_step: int
    best_f1: float
    o_bias: float
    stopped_early: bool
    seconds: float


Event = Stepped | Evaluated | Finished


class MetricsFile:
    """One JSON line per step and per look at the dev split."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / METRICS

    def trim(self, phases: list[str], phase: str, step: int) -> None:
        """Drop what was written after the state that a run is taken up from."""
        if not self._path.is_file():
            return
        kept = []
        for line in self._path.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n"):
                break  # cut short by a kill
            record: dict[str, Any] = json.loads(line)
            if (phases.index(record["phase"]), record["step"]) <= (phases.index(phase), step):
                kept.append(line)
        write_text(self._path, kept)

    def record(self, event: Stepped | Evaluated) -> None:
        """Append one line."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(event)) + "\n")


class TensorBoard:
    """The same for TensorBoard, which must be installed."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder / "tensorboard"))

    def record(self, event: Stepped | Evaluated) -> None:
        """Add the event's numbers."""
        names = ("loss", "rate") if isinstance(event, Stepped) else ("dev_f1", "dev_f1_unbiased", "o_bias")
        for name in names:
            self._writer.add_scalar(f"{event.phase}/{name}", getattr(event, name), event.step)

    def close(self) -> None:
        """Write out what is left."""
        self._writer.close()
