"""The events of a run, and the files that record them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from spanshot.errors import CheckpointError, DataError
from spanshot.files import write_text
from spanshot.json_text import Fields, parse_json, to_json

METRICS = "metrics.jsonl"


@dataclass(frozen=True, slots=True)
class Stepped:
    """An optimizer step was taken: number ``step`` of ``of``."""

    phase: str
    step: int
    of: int
    loss: float
    rate: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The model was evaluated on the dev split after ``step`` steps."""

    phase: str
    step: int
    dev_f1: float
    o_bias: float
    dev_f1_unbiased: float
    best: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is finished; its best checkpoint is that of ``best_step``."""

    best_step: int
    best_f1: float
    o_bias: float
    stopped_early: bool
    seconds: float


Event = Stepped | Evaluated | Finished


class MetricsFile:
    """Records steps and evaluations, one JSON line each."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / METRICS

    def trim(self, phases: Sequence[str], phase: str, step: int) -> None:
        """Drop all lines after the state that a run resumes from, and a line that a kill cut short."""
        if not self._path.is_file():
            return
        lines = []
        for line in self._path.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            try:
                fields = Fields.of(parse_json(line))
                position = phases.index(fields.text("phase")), fields.integer("step")
            except (DataError, ValueError) as problem:
                raise CheckpointError(f"{self._path}: damaged: {problem}; remove it to resume the run") from None
            if position <= (phases.index(phase), step):
                lines.append(line)
        write_text(self._path, lines)

    def record(self, event: Stepped | Evaluated) -> None:
        """Append one line. A loss that is not a number becomes null."""
        values = {name: None if value != value else value for name, value in asdict(event).items()}
        try:
            with self._path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(to_json(values) + "\n")
        except OSError as error:
            raise DataError.at(self._path, None, f"cannot be written: {error.strerror}") from error


class TensorBoard:
    """Records steps and evaluations for TensorBoard, which must be installed."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def record(self, event: Stepped | Evaluated) -> None:
        """Add the numbers of the event."""
        names = ("loss", "rate") if isinstance(event, Stepped) else ("dev_f1", "dev_f1_unbiased", "o_bias")
        for name in names:
            self._writer.add_scalar(f"{event.phase}/{name}", getattr(event, name), event.step)

    def close(self) -> None:
        """Flush and close the log."""
        self._writer.close()
