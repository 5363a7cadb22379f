"""The state of an unfinished run, in one safetensors file that is replaced as a whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from spanshot.errors import CheckpointError, DataError
from spanshot.files import write_bytes
from spanshot.json_text import Fields, parse_json, to_json

NAME = "resume.safetensors"
_MODULE, _OPTIMIZER, _AVERAGE = "module", "optimizer", "average"


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    phase: str
    done: int = 0
    best_step: int = 0
    best_f1: float = -1.0
    o_bias: float = 0.0
    evaluations_since_best: int = 0
    seconds: float = 0.0

    @classmethod
    def from_json(cls, text: str) -> Progress:
        """Read what `write_state` wrote."""
        fields = Fields.of(parse_json(text))
        return cls(
            phase=fields.text("phase"),
            done=fields.integer("done"),
            best_step=fields.integer("best_step"),
            best_f1=fields.number("best_f1"),
            o_bias=fields.number("o_bias"),
            evaluations_since_best=fields.integer("evaluations_since_best"),
            seconds=fields.number("seconds"),
        )


@dataclass(frozen=True)
class State:
    """Progress, and the weights and optimizer state that belong to it."""

    progress: Progress
    module: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    average: dict[str, Tensor] = field(default_factory=dict)
    """Averaged weights, if the run keeps an average."""


def write_state(folder: Path, state: State) -> None:
    """Write the state to the folder, replacing an older one."""
    tensors = {f"{_MODULE}/{name}": value.detach().contiguous() for name, value in state.module.items()}
    tensors |= {f"{_OPTIMIZER}/{name}": value.contiguous() for name, value in state.optimizer.items()}
    tensors |= {f"{_AVERAGE}/{name}": value.contiguous() for name, value in state.average.items()}
    write_bytes(folder / NAME, save(tensors, {"progress": to_json(asdict(state.progress))}))


def read_state(folder: Path) -> State | None:
    """Return the state of the run in the folder; None if there is none."""
    path = folder / NAME
    if not path.is_file():
        return None
    parts: dict[str, dict[str, Tensor]] = {_MODULE: {}, _OPTIMIZER: {}, _AVERAGE: {}}
    try:
        with safe_open(path, framework="pt") as file:
            progress = Progress.from_json((file.metadata() or {}).get("progress", ""))
            for key in list(file.keys()):
                part, _, name = key.partition("/")
                parts[part][name] = file.get_tensor(key)
    except (SafetensorError, KeyError, DataError) as problem:
        raise CheckpointError(f"{path}: damaged: {problem}; remove it to start the run again") from problem
    return State(progress, parts[_MODULE], parts[_OPTIMIZER], parts[_AVERAGE])


def has_state(folder: Path) -> bool:
    """Whether the folder contains an unfinished run."""
    return (folder / NAME).is_file()


def remove_state(folder: Path) -> None:
    """Remove the state of a finished run."""
    (folder / NAME).unlink(missing_ok=True)
