"""The state of a run that is under way, as one file that is replaced in one move."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from spanshot.errors import CheckpointError

NAME = "resume.safetensors"
_MODULE, _OPTIMIZER = "module/", "optimizer/"


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    phase: str
    done: int = 0
    best_step: int = 0
    best_f1: float = -1.0
    o_bias: float = 0.0
    looks_since_best: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class State:
    """Progress, and the weights and optimiser state that go with it."""

    progress: Progress
    module: dict[str, Tensor]
    optimizer: dict[str, Tensor]


def write_state(folder: Path, state: State) -> None:
    """Write beside the old state, then take its place."""
    tensors = {_MODULE + name: value.detach().contiguous() for name, value in state.module.items()}
    tensors |= {_OPTIMIZER + name: value.contiguous() for name, value in state.optimizer.items()}
    fresh = folder / f"{NAME}.new"
    save_file(tensors, fresh, metadata={"progress": json.dumps(asdict(state.progress))})
    fresh.replace(folder / NAME)


def read_state(folder: Path) -> State | None:
    """The state left in a run folder, if there is one."""
    path = folder / NAME
    if not path.is_file():
        return None
    module: dict[str, Tensor] = {}
    optimizer: dict[str, Tensor] = {}
    try:
        with safe_open(path, framework="pt") as file:
            progress = Progress(**json.loads(file.metadata()["progress"]))
            for key in file.keys():  # noqa: SIM118 (not a dict)
                kind, _, name = key.partition("/")
                (module if kind + "/" == _MODULE else optimizer)[name] = file.get_tensor(key)
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as problem:
        raise CheckpointError(f"{path}: damaged: {problem}; remove it to start the run anew") from problem
    return State(progress, module, optimizer)


def remove_state(folder: Path) -> None:
    """A run that has ended needs none."""
    (folder / NAME).unlink(missing_ok=True)
