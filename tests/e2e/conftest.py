from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from spanshot.cli.main import main
from spanshot.settings import to_toml


@dataclass(frozen=True)
class CommandResult:
    """The output and exit code of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def spanshot(capsys):
    """Runs a command in this process."""

    def run(*arguments: object) -> CommandResult:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return CommandResult(ended.value.code or 0, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def lab(tmp_path_factory) -> Path:
    """A folder with a tiny encoder, episode files and a config that trains on them in a second."""
    pytest.importorskip("torch", reason="needs the extra [train]")
    from spanshot.research.corpora.episode_files import write_episodes
    from tiny import toy_episodes, write_tiny_encoder

    folder = tmp_path_factory.mktemp("lab")
    write_tiny_encoder(folder / "encoder")
    for number, split in enumerate(("train", "dev", "test")):
        write_episodes(folder / f"{split}.jsonl", toy_episodes(4, seed=number))
    table = {
        "seed": 1,
        "method": {"name": "esd", "size": 16},
        "data": {"kind": "episodes", **{split: str(folder / f"{split}.jsonl") for split in ("train", "dev", "test")}},
        "encoder": {"name": str(folder / "encoder")},
        "train": {"steps": 4, "batch": 1, "evaluate_every": 2, "save_every": 1, "encoder_rate": 1e-3},
    }
    (folder / "toy.toml").write_text(to_toml(table), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def trained(lab) -> Path:
    """A run that has ended; not to be changed."""
    with pytest.raises(SystemExit) as ended:
        main(["train", str(lab / "toy.toml"), "--run", str(lab / "trained"), "--quiet"])
    assert not ended.value.code
    return lab / "trained"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A small model of random weights that finds something in every text."""
    pytest.importorskip("torch", reason="needs the extra [train]")
    from spanshot.research.checkpoint import new_method, save
    from tiny import write_tiny_encoder
    from tiny_esd import untrained_settings

    folder = tmp_path_factory.mktemp("model")
    settings = untrained_settings(write_tiny_encoder(folder / "encoder"))
    method = new_method(settings)
    method.o_bias.fill_(1000.0)  # so that random weights find something everywhere
    save(folder / "checkpoint", method, settings.model)
    return folder / "checkpoint"


@pytest.fixture
def examples(tmp_path) -> Path:
    """A file of examples."""
    tiny = pytest.importorskip("tiny", exc_type=ImportError)  # needs torch

    path = tmp_path / "examples.txt"
    path.write_text(tiny.EXAMPLES, encoding="utf-8")
    return path
